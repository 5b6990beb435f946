// SPDX-License-Identifier: Apache-2.0
// SGD with momentum and weight decay as PyTorch has it: g' = g + decay w; v = mu v + g'; w = w - lr v. In f32, each
// product and each sum rounded once in exactly this order: every backend that updates gives the same bits.
#include "kernels/reference/loops.hpp"

namespace rehearse::kernels::reference {

void run(const SgdUpdate& op, Pass /*pass*/, std::int64_t /*batch*/, const Buffers& b) {
    float* const weights = b.weights.data();
    float* const momentum = b.momentum.data();
    const float* const diff = b.diff_weights.data();
    const float rate = b.learning_rate;
    const float factor = b.momentum_factor;
    const float decay = b.weight_decay;
    for (std::int64_t i = 0; i < op.count; ++i) {
        const float gradient = diff[i] + decay * weights[i];
        momentum[i] = factor * momentum[i] + gradient;
        weights[i] = weights[i] - rate * momentum[i];
    }
}

}  // namespace rehearse::kernels::reference
