// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace rehearse {

/// Gradients are late when they are applied (Kurth et al. 2018).
struct Lag {
    int steps = 0;  // 1: a step sums the gradients of the step before it, and updates by these
};

}  // namespace rehearse
