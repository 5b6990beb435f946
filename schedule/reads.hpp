// SPDX-License-Identifier: Apache-2.0
// What a layer's backward passes need of its forward pass.
#pragma once

#include "core/op.hpp"

namespace rehearse::schedule {

/// Which of its input and output a backward pass reads. Outputs rather than inputs where either would do (activations),
/// as PyTorch saves them; both for max pooling, as cuDNN's takes them.
struct Reads {
    bool src = false, dst = false;
};
Reads reads(const Op& op, Pass pass);

/// Bytes that forward keeps for backward beside inputs and output, of `batch` samples in a type of `size` bytes: masks,
/// slopes, attention's probabilities.
double kept_bytes(const Op& op, double size, double batch);

}  // namespace rehearse::schedule
