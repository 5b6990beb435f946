// SPDX-License-Identifier: Apache-2.0
// cuDNN and cuBLAS as backends over the GPU that `engine` is. Buffers lie in its memory.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "kernels/backend.hpp"
#include "kernels/cuda/engine.hpp"

namespace rehearse::kernels::cudnn {

/// "cudnn heuristic": the first engine that cuDNN's heuristics propose and that fits into the scratch limit. "cudnn
/// tensor-tf32": the same with f32 rounded to TF32. Where there is a GPU, also "cudnn engine0", "cudnn tf32-engine0"
/// and so on, each forced; they exist for as many numbers as cuDNN has engines of any pass, and refuse what they do not
/// run.
std::vector<std::unique_ptr<Backend>> convolutions(cuda::Engine& engine);

/// What cuDNN says against the description of a convolution; empty where it takes it. Needs the library, but no GPU.
std::string refused_description(const Problem& problem);

/// "cublas gemm" and "cublas tensor-tf32": dense layers.
std::vector<std::unique_ptr<Backend>> products(cuda::Engine& engine);

}  // namespace rehearse::kernels::cudnn
