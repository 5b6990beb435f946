// SPDX-License-Identifier: Apache-2.0
// Tiles of attention on tensor cores: sixteen rows of scores are in a warp's registers, and become a factor of the next
// product without leaving them. From sm_80 on.
#pragma once

#include <cmath>

#include "kernels/cuda/attention.hpp"
#include "kernels/cuda/packed_tile.hpp"

namespace rehearse::kernels::cuda {

constexpr int largest_flash_head = 256;

REHEARSE_BOTH inline float exponential(float x) {
#ifdef __CUDA_ARCH__
    return __expf(x);  // its error is far below what 16 bits keep
#else
    return std::exp(x);
#endif
}
/// Two numbers as tensor cores take them, the first in the lower half.
template <typename Element>
REHEARSE_BOTH std::uint32_t pair_of(float first, float second) {
    return from_float<Element>(first).bits | std::uint32_t{from_float<Element>(second).bits} << 16;
}

/// Tiles of 64 rows of heads of up to `size_` numbers and `others_` rows that they meet, in shared memory with a vector
/// of room behind each row, so that eight rows that are read at once lie in different banks.
template <typename Element_, int size_, int others_ = 64>
struct FlashTile {
    using Element = Element_;
    static constexpr int room = size_, side = 64, threads = 128, vectors = size_ / 8, pitch = vectors + 1;
    static constexpr int steps = size_ / 16;
    static constexpr int others = others_, blocks_of_scores = others / 8;
    static_assert(size_ % 16 == 0);
    using Rows = Vector[side][pitch];
    using OtherRows = Vector[others][pitch];
    /// Of one warp's 16 rows: the factors that are loaded for one product after the other.
    struct Fragments16 {
        std::uint32_t a[4], b[4];
    };
    using Scores = float[blocks_of_scores][4];

    static REHEARSE_BOTH int row_of_warp(int thread) { return thread / 32 * 16; }
    static REHEARSE_BOTH void clear(float (&some)[4]) {
        REHEARSE_UNROLL
        for (int e = 0; e < 4; ++e) some[e] = 0;
    }

    /// Begins to copy rows from `first` on; zeros beyond the last row and beyond a head's size.
    template <typename Team, int count>
    static REHEARSE_BOTH void start(Team& team, const Attending& a, const Block& block, const Heads& from,
                                    std::int64_t first, std::int64_t rows, Vector (&to)[count][pitch]) {
        team.alone([&](int thread, auto&) {
            const int whole = static_cast<int>(a.size) / 8;
            const auto* const begin = static_cast<const Element*>(from.values.data);
            REHEARSE_ROLLED
            for (int n = thread; n < count * vectors; n += threads) {
                const int row = n / vectors, vector = n % vectors;
                const bool there = first + row < rows && vector < whole;
                const std::int64_t at = there ? from.at(block, first + row, a.size) + vector * 8 : 0;
                team.copy(to[row][vector], reinterpret_cast<const Vector*>(begin + at), there);
            }
        });
    }
    /// scores(registers) += own other^T, of the warp's rows of `own`.
    template <typename Team, typename Of>
    static REHEARSE_BOTH void multiply(Team& team, const Rows& own, const OtherRows& other, Of scores) {
        REHEARSE_BY_TWO
        for (int k = 0; k < steps; ++k) {
            team.load_matrices([&, k](int thread, auto& r) -> MatrixRow {
                const int lane = thread % 32;
                return {r.factors.a, &own[row_of_warp(thread) + lane % 16][2 * k + lane / 16]};
            });
            REHEARSE_UNROLL
            for (int j = 0; j < blocks_of_scores / 2; ++j) {
                team.load_matrices([&, k, j](int thread, auto& r) -> MatrixRow {
                    const int lane = thread % 32;
                    return {r.factors.b, &other[16 * j + lane / 16 * 8 + lane % 8][2 * k + lane / 8 % 2]};
                });
                multiply_pair(team, [&scores, j](auto& r, int half) -> float(&)[4] { return scores(r)[2 * j + half]; });
            }
        }
    }
    /// sums(registers)[column / 8] += factor rows, of numbers first_column and on of each row: scores, that
    /// factor(registers) gives, are rounded and become the first factor.
    template <int columns, typename Team, typename Factor, typename Of>
    static REHEARSE_BOTH void add(Team& team, Factor factor, const OtherRows& rows, int first_column, Of sums) {
        REHEARSE_UNROLL
        for (int k = 0; k < others / 16; ++k) {
            team.alone([&, k](int, auto& r) {
                const Scores& s = factor(r);
                r.factors.a[0] = pair_of<Element>(s[2 * k][0], s[2 * k][1]);
                r.factors.a[1] = pair_of<Element>(s[2 * k][2], s[2 * k][3]);
                r.factors.a[2] = pair_of<Element>(s[2 * k + 1][0], s[2 * k + 1][1]);
                r.factors.a[3] = pair_of<Element>(s[2 * k + 1][2], s[2 * k + 1][3]);
            });
            REHEARSE_UNROLL
            for (int j = 0; j < columns / 16; ++j) {
                team.load_transposed([&, k, j](int thread, auto& r) -> MatrixRow {
                    const int lane = thread % 32;
                    return {r.factors.b,
                            &rows[16 * k + lane / 8 % 2 * 8 + lane % 8][first_column / 8 + 2 * j + lane / 16]};
                });
                multiply_pair(team, [&sums, j](auto& r, int half) -> float(&)[4] { return sums(r)[2 * j + half]; });
            }
        }
    }
    /// visit(row of the tile, column, half, number) for each of this thread's scores, which it may change; half 1: its
    /// second row, eight further.
    template <typename Visit>
    static REHEARSE_BOTH void each_score(int thread, Scores& scores, Visit visit) {
        const int row = row_of_warp(thread) + thread % 32 / 4, column = thread % 4 * 2;
        REHEARSE_UNROLL
        for (int j = 0; j < blocks_of_scores; ++j) {
            REHEARSE_UNROLL
            for (int e = 0; e < 4; ++e) visit(row + e / 2 * 8, 8 * j + column + e % 2, e / 2, scores[j][e]);
        }
    }
    /// The warp's sums into its own rows of `to`, then from there to memory, 16 bytes a store.
    template <int columns, typename Team, typename Of>
    static REHEARSE_BOTH void store(Team& team, const Attending& a, const Block& block, const Heads& to,
                                    std::int64_t first, std::int64_t rows, int first_column, Rows& through, Of sums) {
        team.each([&](int thread, auto& r) {
            const int row = row_of_warp(thread) + thread % 32 / 4, column = thread % 4 * 2;
            REHEARSE_UNROLL
            for (int j = 0; j < columns / 8; ++j) {
                REHEARSE_UNROLL
                for (int half = 0; half < 2; ++half) {
                    auto* const words = reinterpret_cast<std::uint32_t*>(&through[row + 8 * half][j]);
                    words[column / 2] = pair_of<Element>(sums(r)[j][2 * half], sums(r)[j][2 * half + 1]);
                }
            }
        });
        team.each([&](int thread, auto&) {
            const int whole = static_cast<int>(a.size) / 8;
            REHEARSE_ROLLED
            for (int n = thread; n < side * (columns / 8); n += threads) {
                const int row = n / (columns / 8), vector = n % (columns / 8), at = first_column / 8 + vector;
                if (first + row >= rows || at >= whole) continue;
                put_words(static_cast<Element*>(to.values.data) + to.at(block, first + row, a.size) + at * 8,
                          words_at<4>(&through[row][vector]));
            }
        });
    }

private:
    template <typename Team, typename Of>
    static REHEARSE_BOTH void multiply_pair(Team& team, Of sums) {
        REHEARSE_UNROLL
        for (int half = 0; half < 2; ++half) {
            team.template multiply<Element>([&, half](auto& r) -> Fragments {
                return {sums(r, half), r.factors.a, reinterpret_cast<const std::uint32_t(&)[2]>(r.factors.b[2 * half])};
            });
        }
    }
};

}  // namespace rehearse::kernels::cuda
