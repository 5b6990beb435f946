// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "core/schedule.hpp"

namespace rehearse {

/// Along which axes ranks have pieces of tensors of a bucket, so that a norm of one of them is a sum over all of these:
/// first the one along which updates are shared out (`sharded`; -1: none), then those that cut weights, in their order.
/// Axes of one rank are left out.
std::vector<int> axes_of_norms(const Mesh& mesh, const Part& part, const Bucket& bucket, int sharded);

/// Whether an update of LAMB is one of pieces, whose norms are brought together first: Adam's, as far as they say.
bool by_known_norms(const Schedule& schedule, const Update& update);

/// Whether any of its updates is.
bool has_known_norms(const Schedule& schedule);

}  // namespace rehearse
