// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/device.cuh"

void rehearse::kernels::cuda::launch_loops(const LoopTask& any, cudaStream_t stream) {
    std::visit([stream](const auto& task) { launch(task, stream); }, any);
}
