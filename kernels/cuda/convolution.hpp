// SPDX-License-Identifier: Apache-2.0
// Our convolutions as backends over an engine. Buffers lie in the engine's memory.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "kernels/backend.hpp"
#include "kernels/cuda/engine.hpp"

namespace rehearse::kernels::cuda {

/// "direct", "gemm" (f32 on ordinary cores; f16, bf16 on tensor cores), "tensor-tf32", "winograd2", "winograd4"; they
/// run on `engine`, which outlives them.
std::vector<std::unique_ptr<Backend>> convolutions(Engine& engine);

/// "nhwc-packed" and "nhwc-wgmma" (no backward_weights), of 16-bit tensors that are channels last
/// (kernels/channels_last.hpp).
std::vector<std::unique_ptr<Backend>> channels_last_convolutions(Engine& engine);

/// The same for buffers in the host's memory: copies what the pass reads in, runs, copies what it writes out. For
/// checks and tests, not for speed. `device` and `engine` outlive it.
std::unique_ptr<Backend> staged(const Backend& device, Engine& engine);

}  // namespace rehearse::kernels::cuda
