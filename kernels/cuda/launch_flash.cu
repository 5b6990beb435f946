// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/device.cuh"
#include "kernels/cuda/flash_tasks.hpp"

void rehearse::kernels::cuda::launch_flash(const FlashTask& any, cudaStream_t stream) {
    std::visit([stream](const auto& task) { launch_large(task, stream); }, static_cast<const AnyFlash&>(any));
}
