// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/device.cuh"

void rehearse::kernels::cuda::launch_implicit_gemm(const ImplicitGemmTask& any, cudaStream_t stream) {
    std::visit([stream](const auto& task) { launch(task, stream); }, any);
}
