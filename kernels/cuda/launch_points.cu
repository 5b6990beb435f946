// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/device.cuh"
#include "kernels/cuda/points.hpp"

void rehearse::kernels::cuda::launch_points(const PointTask& any, cudaStream_t stream) {
    std::visit([stream](const auto& task) { launch(task, stream); }, static_cast<const AnyPoint&>(any));
}
