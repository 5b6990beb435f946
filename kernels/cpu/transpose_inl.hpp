// SPDX-License-Identifier: Apache-2.0
// Transposition by 4 x 4 blocks, compiled once a SIMD target: an -inl file as Highway has them, with its own guard.
#if defined(REHEARSE_CPU_TRANSPOSE_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef REHEARSE_CPU_TRANSPOSE_INL
#undef REHEARSE_CPU_TRANSPOSE_INL
#else
#define REHEARSE_CPU_TRANSPOSE_INL
#endif

#include <cstdint>

#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace rehearse::kernels::cpu::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

/// out[j * out_row + i] = in[i * in_row + j] of a 4 x 4 block.
HWY_INLINE void transpose_4x4(const float* HWY_RESTRICT in, std::int64_t in_row, float* HWY_RESTRICT out,
                              std::int64_t out_row) {
#if HWY_TARGET == HWY_SCALAR
    for (int i = 0; i < 4; ++i) {
        for (int j = 0; j < 4; ++j) out[j * out_row + i] = in[i * in_row + j];
    }
#else
    const hn::FixedTag<float, 4> d;
    const auto a = hn::LoadU(d, in);
    const auto b = hn::LoadU(d, in + in_row);
    const auto c = hn::LoadU(d, in + 2 * in_row);
    const auto e = hn::LoadU(d, in + 3 * in_row);
    const auto ab = hn::InterleaveLower(d, a, b);
    const auto ce = hn::InterleaveLower(d, c, e);
    const auto ab_upper = hn::InterleaveUpper(d, a, b);
    const auto ce_upper = hn::InterleaveUpper(d, c, e);
    hn::StoreU(hn::ConcatLowerLower(d, ce, ab), d, out);
    hn::StoreU(hn::ConcatUpperUpper(d, ce, ab), d, out + out_row);
    hn::StoreU(hn::ConcatLowerLower(d, ce_upper, ab_upper), d, out + 2 * out_row);
    hn::StoreU(hn::ConcatUpperUpper(d, ce_upper, ab_upper), d, out + 3 * out_row);
#endif
}

/// out {columns, rows} = in {rows, columns} transposed.
HWY_INLINE void transpose(const float* HWY_RESTRICT in, std::int64_t in_row, std::int64_t rows, std::int64_t columns,
                          float* HWY_RESTRICT out, std::int64_t out_row) {
    const std::int64_t whole_rows = rows / 4 * 4;
    const std::int64_t whole_columns = columns / 4 * 4;
    for (std::int64_t j = 0; j < whole_columns; j += 4) {
        for (std::int64_t i = 0; i < whole_rows; i += 4) {
            transpose_4x4(in + i * in_row + j, in_row, out + j * out_row + i, out_row);
        }
    }
    const auto copy = [&](std::int64_t i, std::int64_t j) { out[j * out_row + i] = in[i * in_row + j]; };
    for (std::int64_t j = 0; j < columns; ++j) {
        for (std::int64_t i = j < whole_columns ? whole_rows : 0; i < rows; ++i) copy(i, j);
    }
}

}  // namespace rehearse::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
