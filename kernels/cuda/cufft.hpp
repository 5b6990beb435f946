// SPDX-License-Identifier: Apache-2.0
// cuFFT's transforms of batches of planes, on a stream. The library is opened when it is first needed.
#pragma once

#include <cuda_runtime.h>

#include <string>

#include "kernels/cuda/engine.hpp"

namespace rehearse::kernels::cuda {

/// Empty, or why there is none.
std::string cufft_refusal();
void cufft_forward(const Engine::PlaneBatch& batch, const float* planes, float* spectra, cudaStream_t stream);
void cufft_back(const Engine::PlaneBatch& batch, float* spectra, float* planes, cudaStream_t stream);

}  // namespace rehearse::kernels::cuda
