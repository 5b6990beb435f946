// SPDX-License-Identifier: Apache-2.0
// Gradient buckets (Li et al. 2020, "PyTorch Distributed"): small gradients are sent together, early ones first.
#pragma once

#include <vector>

#include "core/schedule.hpp"

namespace rehearse::schedule {

/// Layers with weights, packed in the order in which the backward pass makes their gradients. A bucket closes as soon
/// as it holds `limit` bytes (the first: the smaller of `first` and `limit`), so it is at least that large, but the
/// last. Layers of which a rank sees a part of the gradients only (Origin::partial) make one bucket more, the last.
std::vector<Bucket> make_buckets(const Part& part, DataType wire, Bytes first, Bytes limit);

}  // namespace rehearse::schedule
