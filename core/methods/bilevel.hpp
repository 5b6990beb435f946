// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <variant>

#include "core/op.hpp"

namespace rehearse {

/// First-order bilevel training (Liu et al. 2019, "DARTS", algorithm 1 with xi = 0): of each step's batch the first
/// half gives the gradients that the network's architecture is updated by, and the second half, at the architecture
/// that this leaves, those of all other weights.
struct Bilevel {
    bool on = false;
};
/// Whether an operator's weights are the architecture: tensors that stand beside the samples, such as the shares of
/// mixed operators.
inline bool is_architecture(const Op& op) { return std::holds_alternative<Parameter>(op); }

}  // namespace rehearse
