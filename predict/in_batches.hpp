// SPDX-License-Identifier: Apache-2.0
// Dilated convolutions as TensorFlow 1 has them (python/ops/nn_ops.py, with_space_to_batch): pixels that are so far
// apart become images of their own, with the padding on them, and are convolved without gaps.
#pragma once

#include <cstdint>
#include <optional>

#include "core/machine.hpp"
#include "core/op.hpp"

namespace rehearse::predict {

/// What a pass of a dilated convolution is then: `problem`, before which `whole` was copied together to `parts` of each
/// of `images` images a sample.
struct InBatches {
    Problem problem;
    Shape whole, parts;
    std::int64_t images = 1;
};
/// The gradient of the input is a convolution to all pixels of the images, and multiplies their padding. The gradient
/// of the output, which both backward passes read, is copied by that of the weights. Nothing of other problems.
std::optional<InBatches> in_batches(const Problem& problem);

/// What the copies take: each reads and writes once, the forward pass copies its output back.
Seconds copied_together(const InBatches& in, const Problem& problem, const DeviceClass& device);

}  // namespace rehearse::predict
