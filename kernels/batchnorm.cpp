// SPDX-License-Identifier: Apache-2.0
#include "kernels/batchnorm.hpp"

#include <algorithm>

namespace rehearse::kernels {

void update_running_statistics(const BatchNorm& op, std::int64_t batch, const Buffers& buffers) {
    if (buffers.state.empty()) return;
    const std::int64_t count = batch * op.parts * pixels(op);
    const float unbias = static_cast<float>(count) / static_cast<float>(std::max<std::int64_t>(count - 1, 1));
    const auto momentum = static_cast<float>(op.momentum);
    for (std::int64_t c = 0; c < op.channels; ++c) {
        float& mean = buffers.state[c];
        float& variance = buffers.state[op.channels + c];
        mean += momentum * (buffers.workspace[c] - mean);
        variance += momentum * (unbias * buffers.workspace[op.channels + c] - variance);
    }
}

}  // namespace rehearse::kernels
