// SPDX-License-Identifier: Apache-2.0
// Kernels of plans that were found. Only this folder includes it.
#pragma once

#include <memory>

#include "kernels/backend.hpp"
#include "kernels/cuda/engine.hpp"
#include "kernels/cudnn/graph.hpp"

namespace rehearse::kernels::cudnn {

/// The one of this process, on the stream in use.
cudnnHandle_t handle(cuda::Engine& engine);

/// Runs a plan on tensors, by their ids, with `workspace` where it needs one.
void execute(cuda::Engine& engine, const Plan& plan, const std::vector<std::int64_t>& ids,
             const std::vector<void*>& tensors, const void* workspace);

std::unique_ptr<Kernel> convolution_kernel(cuda::Engine& engine, const Problem& problem,
                                           std::shared_ptr<const Plan> plan, bool channels_last);
/// Of its floats: means, then inverses of deviations, each from whole 16 bytes on.
std::int64_t norm_workspace(const Op& op, std::int64_t batch);
std::unique_ptr<Kernel> norm_kernel(cuda::Engine& engine, const Problem& problem, std::shared_ptr<const Plan> plan);
std::unique_ptr<Kernel> attention_kernel(cuda::Engine& engine, const Problem& problem,
                                         std::shared_ptr<const Plan> plan);

}  // namespace rehearse::kernels::cudnn
