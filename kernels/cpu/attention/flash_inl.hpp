// SPDX-License-Identifier: Apache-2.0
// A block of keys by a panel of queries. Scores are kept transposed, {keys, panel}: a query is a lane, so its maximum
// and its sum need no step across lanes, and what the softmax leaves is the packed right operand of the next product.
#if defined(REHEARSE_CPU_FLASH_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef REHEARSE_CPU_FLASH_INL
#undef REHEARSE_CPU_FLASH_INL
#else
#define REHEARSE_CPU_FLASH_INL
#endif

#include <algorithm>
#include <limits>

#include "hwy/highway.h"
#include "kernels/cpu/algorithm.hpp"
#include "kernels/cpu/attention/flash.hpp"
#include "kernels/cpu/gemm/gemm.hpp"
#include "kernels/cpu/gemm/pack_inl.hpp"
#include "kernels/cpu/rows/exp_inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace rehearse::kernels::cpu::HWY_NAMESPACE {

/// Memory handed out piece by piece, each at the start of a cache line.
class Space {
public:
    explicit Space(float* begin) : next_(begin) {}
    float* take(std::int64_t floats) {
        float* const taken = next_;
        next_ += whole_lines(floats);
        return taken;
    }
    std::int64_t used(const float* begin) const { return next_ - begin; }

private:
    float* next_;
};

/// Cuts [0, keys) into blocks of at most `most`.
struct KeyBlocks {
    std::int64_t keys, most;
    std::int64_t count() const { return divide_up(keys, most); }
    std::int64_t first(std::int64_t block) const { return block * most; }
    std::int64_t size(std::int64_t block) const { return std::min(most, keys - block * most); }
};

/// {keys, head_size} packed as left operands, a block after the other.
class PackedRows {
public:
    PackedRows(KeyBlocks blocks, std::int64_t size, float* data)
        : blocks_(blocks), size_(size), step_(whole_lines(packed_a_floats(blocks.most, size))), data_(data) {}
    static std::int64_t floats(KeyBlocks blocks, std::int64_t size) {
        // The last block's panels may be taller than its share of the others'.
        return (blocks.count() + 1) * whole_lines(packed_a_floats(blocks.most, size));
    }
    void pack(HeadRows<const float> rows) {
        for (std::int64_t b = 0; b < blocks_.count(); ++b) {
            pack_a({blocks_.size(b), 0, size_}, {rows.data + blocks_.first(b) * rows.row, rows.row, 1}, at(b));
        }
    }
    float* at(std::int64_t block) const { return data_ + block * step_; }

private:
    KeyBlocks blocks_;
    std::int64_t size_, step_;
    float* data_;
};

/// Their transpose {head_size, keys} packed as left operands, a block after the other.
class PackedColumns {
public:
    PackedColumns(KeyBlocks blocks, std::int64_t size, float* data)
        : blocks_(blocks), size_(size), step_(whole_lines(packed_a_floats(size, blocks.most))), data_(data) {}
    static std::int64_t floats(KeyBlocks blocks, std::int64_t size) {
        return blocks.count() * whole_lines(packed_a_floats(size, blocks.most));
    }
    void pack(HeadRows<const float> rows) {
        for (std::int64_t b = 0; b < blocks_.count(); ++b) {
            pack_a({size_, 0, blocks_.size(b)}, {rows.data + blocks_.first(b) * rows.row, 1, rows.row}, at(b));
        }
    }
    float* at(std::int64_t block) const { return data_ + block * step_; }

private:
    KeyBlocks blocks_;
    std::int64_t size_, step_;
    float* data_;
};

/// What a causal panel sees of a block: its first query the keys before `from`, each later query one more.
struct Visible {
    std::int64_t from;
    bool all(std::int64_t keys) const { return from >= keys; }
};

inline constexpr float hidden = -std::numeric_limits<float>::max();

/// Scores that a causal query does not see become the lowest number.
HWY_INLINE void hide(float* HWY_RESTRICT scores, std::int64_t keys, Visible visible) {
    for (std::int64_t j = std::max<std::int64_t>(visible.from, 0); j < keys; ++j) {
        const std::int64_t blind = std::min(j - visible.from + 1, columns);
        std::fill_n(scores + j * columns, blind, hidden);
    }
}

/// One lane a query: the largest score so far, the sum of 2^(rate (score - largest)).
struct Running {
    Vector largest[2], sum[2];
};

/// Turns scores into 2^(rate (score - largest)), moves `running` on, and gives the factor by which what was summed
/// before must be multiplied (Milakov and Gimelshein 2018).
HWY_INLINE void softmax_block(float* HWY_RESTRICT scores, std::int64_t keys, float rate, Running& running,
                              Vector (&factor)[2]) {
    const Vector rates = hn::Set(f32, rate);
    for (int h = 0; h < 2; ++h) {
        float* const at = scores + h * lanes;
        Vector largest[4] = {running.largest[h], running.largest[h], running.largest[h], running.largest[h]};
        std::int64_t j = 0;
        for (; j + 4 <= keys; j += 4) {
            for (int i = 0; i < 4; ++i) largest[i] = hn::Max(largest[i], hn::LoadU(f32, at + (j + i) * columns));
        }
        for (; j < keys; ++j) largest[0] = hn::Max(largest[0], hn::LoadU(f32, at + j * columns));
        const Vector now = hn::Max(hn::Max(largest[0], largest[1]), hn::Max(largest[2], largest[3]));
        // The difference first: the power of the largest score is exactly 1.
        const auto power = [&](Vector score)
                               HWY_ATTR { return power_of_two(f32, hn::Mul(hn::Sub(score, now), rates)); };
        factor[h] = power(running.largest[h]);
        Vector sum[2] = {hn::Mul(running.sum[h], factor[h]), hn::Zero(f32)};
        for (j = 0; j + 2 <= keys; j += 2) {
            for (int i = 0; i < 2; ++i) {
                float* const score = at + (j + i) * columns;
                const Vector p = power(hn::LoadU(f32, score));
                hn::StoreU(p, f32, score);
                sum[i] = hn::Add(sum[i], p);
            }
        }
        for (; j < keys; ++j) {
            const Vector p = power(hn::LoadU(f32, at + j * columns));
            hn::StoreU(p, f32, at + j * columns);
            sum[0] = hn::Add(sum[0], p);
        }
        running.largest[h] = now;
        running.sum[h] = hn::Add(sum[0], sum[1]);
    }
}

/// Every row of {rows, panel} times one factor a query.
HWY_INLINE void multiply_columns(float* HWY_RESTRICT values, std::int64_t rows, const Vector (&factor)[2]) {
    for (std::int64_t i = 0; i < rows; ++i, values += columns) {
        hn::StoreU(hn::Mul(hn::LoadU(f32, values), factor[0]), f32, values);
        hn::StoreU(hn::Mul(hn::LoadU(f32, values + lanes), factor[1]), f32, values + lanes);
    }
}

/// Rows [first, first + count) of a head as packed right operand {head_size, panel}: each query a column.
HWY_INLINE void pack_queries(HeadRows<const float> rows, std::int64_t first, std::int64_t count, std::int64_t size,
                             float* packed) {
    pack_b({0, count, size}, {rows.data + first * rows.row, 1, rows.row}, packed);
}

/// {head_size, panel} back into rows.
HWY_INLINE void store_queries(const float* values, HeadRows<float> rows, std::int64_t first, std::int64_t count,
                              std::int64_t size) {
    transpose(values, columns, size, count, rows.data + first * rows.row, rows.row);
}

}  // namespace rehearse::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
