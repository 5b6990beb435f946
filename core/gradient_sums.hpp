// SPDX-License-Identifier: Apache-2.0
// What a rank adds up beside its kernels in a backward pass: gradients of a tensor that several layers read, and of
// weights that several micro-batches or layers share.
#pragma once

#include <vector>

#include "core/schedule.hpp"

namespace rehearse {

/// For each step of the class, the sums that follow its kernel on the compute stream, each as an Add of two tensors. Of
/// the layers that read one output, the first in the order of the backward pass writes its gradient and each later one
/// adds its own; likewise of the micro-batches that give to one gradient of weights, and of layers that share weights.
std::vector<std::vector<Problem>> gradient_sums(const Schedule& schedule, const RankClass& rank_class);

}  // namespace rehearse
