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
/// run. Convolutions, batch and layer normalizations, and attention in 16 bits; or, "nhwc-" before each name,
/// convolutions and batch normalizations of tensors that are channels last (kernels/channels_last.hpp).
std::vector<std::unique_ptr<Backend>> plans(cuda::Engine& engine, bool channels_last);

/// What cuDNN says against the description of a problem; empty where it takes it. Needs the library, but no GPU.
std::string refused_description(const Problem& problem, bool channels_last);
/// How many engines cuDNN's heuristics propose for a GPU that is only described, in cuDNN's own JSON, and why others
/// may not be taken. Needs the library, but no GPU; what cuDNN compiles at run time needs a libcuda.so.1, if only the
/// toolkit's stub.
std::int64_t engines_on(const std::string& gpu, const Problem& problem, bool channels_last, std::string& why);

/// "cublas gemm" and "cublas tensor-tf32": dense layers.
std::vector<std::unique_ptr<Backend>> products(cuda::Engine& engine);
/// "cublaslt heuristic", "cublaslt tensor-tf32": the first algorithm that cuBLASLt proposes; where there is a GPU, also
/// "cublaslt algorithm1", "cublaslt tf32-algorithm1" and so on, the next ones, each forced.
std::vector<std::unique_ptr<Backend>> products_lt(cuda::Engine& engine);
/// "cublaslt fp8", "cublaslt fp8-fast": of 16-bit tensors, by 8-bit factors that are scaled and rounded first; fast:
/// summed in tensor cores alone.
std::vector<std::unique_ptr<Backend>> products_fp8(cuda::Engine& engine);
/// What cuBLASLt says against the description of such a product; empty where it takes it. Needs the library, but no
/// GPU.
std::string refused_fp8(const Problem& problem);
/// Empty, or why neither library multiplies this.
std::string product_refusal(const cuda::Engine& engine, const Problem& problem, bool tf32);

}  // namespace rehearse::kernels::cudnn
