// SPDX-License-Identifier: Apache-2.0
// A convolution's pass lowered to implicit GEMMs: where its terms lie, how its pixels are walked. No CUDA.
#pragma once

#include <vector>

#include "core/op.hpp"
#include "kernels/cuda/implicit_gemm.hpp"

namespace rehearse::kernels::cuda {

/// Without pointers; `terms` go where the task can read them.
struct Launch {
    ImplicitGemm gemm;
    std::vector<Term> terms;
};

/// One launch forward and backward_weights (whose target is the output too); backward_data one a phase of the stride.
/// A phase that no tap meets has no terms: its pixels become 0.
std::vector<Launch> launches(const Conv& op, Pass pass, std::int64_t batch);

}  // namespace rehearse::kernels::cuda
