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

#if HWY_TARGET != HWY_SCALAR
using Four = hn::Vec<hn::FixedTag<float, 4>>;

/// The rows a, b, c, e of a 4 x 4 block become columns.
HWY_INLINE void store_transposed(Four a, Four b, Four c, Four e, float* HWY_RESTRICT out, std::int64_t out_row) {
    const hn::FixedTag<float, 4> d;
    const Four ab = hn::InterleaveLower(d, a, b);
    const Four ce = hn::InterleaveLower(d, c, e);
    const Four ab_upper = hn::InterleaveUpper(d, a, b);
    const Four ce_upper = hn::InterleaveUpper(d, c, e);
    hn::StoreU(hn::ConcatLowerLower(d, ce, ab), d, out);
    hn::StoreU(hn::ConcatUpperUpper(d, ce, ab), d, out + out_row);
    hn::StoreU(hn::ConcatLowerLower(d, ce_upper, ab_upper), d, out + 2 * out_row);
    hn::StoreU(hn::ConcatUpperUpper(d, ce_upper, ab_upper), d, out + 3 * out_row);
}
#endif

/// out[j * out_row + i] = in[i * in_row + j * step] of a 4 x 4 block; step is 1, or 2, which reads up to in[.. + 7] or,
/// `from_before`, from in[.. - 1] to in[.. + 6].
template <int step, bool from_before = false>
HWY_INLINE void transpose_4x4(const float* HWY_RESTRICT in, std::int64_t in_row, float* HWY_RESTRICT out,
                              std::int64_t out_row) {
#if HWY_TARGET == HWY_SCALAR
    for (int i = 0; i < 4; ++i) {
        for (int j = 0; j < 4; ++j) out[j * out_row + i] = in[i * in_row + j * step];
    }
#else
    const hn::FixedTag<float, 4> d;
    const auto row = [&](std::int64_t i) HWY_ATTR {
        const float* const from = in + i * in_row;
        if constexpr (step == 1) {
            return hn::LoadU(d, from);
        } else if constexpr (from_before) {
            return hn::ConcatOdd(d, hn::LoadU(d, from + 3), hn::LoadU(d, from - 1));
        } else {
            return hn::ConcatEven(d, hn::LoadU(d, from + 4), hn::LoadU(d, from));
        }
    };
    store_transposed(row(0), row(1), row(2), row(3), out, out_row);
#endif
}

/// out {columns, rows} = in {rows, columns} transposed, of which only every step-th column exists. What is left beside
/// blocks of four columns is a block that overlaps the one before: an image 7 wide has no column by single numbers.
template <int step = 1>
HWY_INLINE void transpose(const float* HWY_RESTRICT in, std::int64_t in_row, std::int64_t rows, std::int64_t columns,
                          float* HWY_RESTRICT out, std::int64_t out_row) {
    const std::int64_t whole_rows = rows / 4 * 4;
    const std::int64_t whole_columns = (step == 1 ? columns : columns - 1) / 4 * 4;  // the last reads no further
    for (std::int64_t j = 0; j < whole_columns; j += 4) {
        for (std::int64_t i = 0; i < whole_rows; i += 4) {
            transpose_4x4<step>(in + i * in_row + j * step, in_row, out + j * out_row + i, out_row);
        }
    }
    const bool overlaps = whole_columns < columns && columns > 4;
    for (std::int64_t i = 0; overlaps && i < whole_rows; i += 4) {
        const std::int64_t j = columns - 4;
        transpose_4x4<step, step != 1>(in + i * in_row + j * step, in_row, out + j * out_row + i, out_row);
    }
    const std::int64_t by_blocks = overlaps ? columns : whole_columns;
    for (std::int64_t j = 0; j < columns; ++j) {
        for (std::int64_t i = j < by_blocks ? whole_rows : 0; i < rows; ++i) {
            out[j * out_row + i] = in[i * in_row + j * step];
        }
    }
}

}  // namespace rehearse::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
