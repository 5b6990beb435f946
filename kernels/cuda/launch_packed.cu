// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/device.cuh"

void rehearse::kernels::cuda::launch_packed(const PackedTask& any, cudaStream_t stream) {
    std::visit([stream](const auto& task) { launch_large(task, stream); }, any);
}
