// SPDX-License-Identifier: Apache-2.0
// C = A B or C += A B where A is small and packed, and B large, row-major and used once: 1 x 1 convolutions. Each panel
// of B is packed by the first rows of C that need it, in the shadow of their multiply-adds, while the next panel is
// fetched.
#pragma once

#include <cstdint>

#include "kernels/cpu/gemm/gemm.hpp"

namespace rehearse::kernels::cpu {

/// `packed_a` as gemm.hpp packs it; B's element (l, j) lies at b[l * ldb + j]. `space` holds streamed_workspace(k)
/// floats, best aligned to 64 bytes.
void gemm_streamed(GemmShape shape, const float* packed_a, const float* b, std::int64_t ldb, float* c, std::int64_t ldc,
                   bool accumulate, float* space);
std::int64_t streamed_workspace(std::int64_t k);

}  // namespace rehearse::kernels::cpu
