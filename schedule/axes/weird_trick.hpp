// SPDX-License-Identifier: Apache-2.0
// "One weird trick" (Krizhevsky 2014): convolutions data-parallel, the dense layers at the end model-parallel, on the
// same ranks.
#pragma once

#include <string>

#include "core/schedule.hpp"

namespace rehearse::schedule {

/// Each of `parts` ranks along mesh axis `axis` has its own samples in all layers but the last dense ones. Of each of
/// these it computes its columns, for the samples of all ranks: one row of a sample is that sample of one rank.
///
///   forward    spread (gather) of the input, columns | ... | gather of the last outputs, one's own row of them
///   backward   columns, spread's sum: each rank gets the gradient of its own samples' input
///
/// The gradients of their weights are complete on each rank. From a dense layer on whose columns cannot be shared
/// evenly each rank has its own samples again. InputError when the network does not end in dense layers, one of which
/// can be shared.
Part share_dense_layers(const Network& network, const std::string& axis_name, int axis, std::int64_t parts);

}  // namespace rehearse::schedule
