// SPDX-License-Identifier: Apache-2.0
// What the CUDA sources of this folder share; nobody else includes it.
#pragma once

#include <cuda_runtime.h>

#include "kernels/cuda/engine.hpp"

namespace rehearse::kernels::cuda {

/// BackendError "CUDA failed in WHAT: ..." unless all is well.
void check(cudaError_t status, const char* what);

// Each compiled by itself.
void launch_implicit_gemm(const ImplicitGemmTask& task, cudaStream_t stream);
void launch_weights(const WeightsTask& task, cudaStream_t stream);
void launch_loops(const LoopTask& task, cudaStream_t stream);
void launch_winograd(const WinogradTask& task, cudaStream_t stream);
void launch_packed(const PackedTask& task, cudaStream_t stream);
void launch_points(const PointTask& task, cudaStream_t stream);
void launch_flash(const FlashTask& task, cudaStream_t stream);

}  // namespace rehearse::kernels::cuda
