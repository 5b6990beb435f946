// SPDX-License-Identifier: Apache-2.0
// A block's tile of a matrix product c[row][column] = sum over k of a[row][k] b[column][k]: how it lies in shared
// memory, who multiplies what. Memory holds words along k: one element, or a pair of 16-bit ones.
#pragma once

#include <cstdint>

#include "kernels/cuda/team.hpp"

namespace rehearse::kernels::cuda {

/// On the ordinary cores, in f32: a thread has m x n sums.
template <int rows_, int columns_, int m, int n>
struct FloatTile {
    using Word = float;
    static constexpr int rows = rows_, columns = columns_, threads = rows / m * (columns / n);
    static constexpr int words = 16, elements_per_word = 1;
    static constexpr int across = columns / n;  // threads side by side
    struct Shared {
        float a[2][words][rows + 4], b[2][words][columns + 4];
    };
    struct Accumulators {
        float c[m][n];
    };

    template <typename Element>
    static REHEARSE_BOTH Word word(Element first, Element /*second*/) {
        return to_float(first);
    }
    static REHEARSE_BOTH void put_a(Shared& shared, int buffer, int row, int k, Word word) {
        shared.a[buffer][k][row] = word;
    }
    static REHEARSE_BOTH void put_b(Shared& shared, int buffer, int column, int k, Word word) {
        shared.b[buffer][k][column] = word;
    }

    static REHEARSE_BOTH void clear(Accumulators& sums) {
        REHEARSE_UNROLL
        for (int i = 0; i < m; ++i) {
            REHEARSE_UNROLL
            for (int j = 0; j < n; ++j) sums.c[i][j] = 0;
        }
    }
    /// A thread's rows lie together, its columns `across` apart: neighbours read, and later write, neighbouring ones.
    template <typename Team>
    static REHEARSE_BOTH void multiply(Team& team, int buffer) {
        team.alone([&, buffer](int thread, auto& registers) {
            const int row = thread / across * m, column = thread % across;
            const Shared& shared = team.shared();
            REHEARSE_UNROLL
            for (int k = 0; k < words; ++k) {
                float a[m], b[n];
                REHEARSE_UNROLL
                for (int i = 0; i < m; ++i) a[i] = shared.a[buffer][k][row + i];
                REHEARSE_UNROLL
                for (int j = 0; j < n; ++j) b[j] = shared.b[buffer][k][column + j * across];
                REHEARSE_UNROLL
                for (int i = 0; i < m; ++i) {
                    REHEARSE_UNROLL
                    for (int j = 0; j < n; ++j) registers.sums.c[i][j] += a[i] * b[j];
                }
            }
        });
    }
    /// visit(row, column, sum) of each that the thread has.
    template <typename Visit>
    static REHEARSE_BOTH void results(int thread, const Accumulators& sums, Visit visit) {
        REHEARSE_UNROLL
        for (int i = 0; i < m; ++i) {
            REHEARSE_UNROLL
            for (int j = 0; j < n; ++j) visit(thread / across * m + i, thread % across + j * across, sums.c[i][j]);
        }
    }
};

/// What one thread has of a warp's product, m16n8 by 8 words (k16 of 16 bits, k8 of TF32), as PTX lays it out: with
/// g = lane / 4 and t = lane % 4, a = {(g, t), (g+8, t), (g, t+4), (g+8, t+4)}, b = {(t, g), (t+4, g)} in (row, word)
/// and (word, column), c = {(g, 2t), (g, 2t+1), (g+8, 2t), (g+8, 2t+1)}: PTX ISA, "Matrix fragments" of mma.m16n8k16
/// with 16-bit types and of mma.m16n8k8 with .tf32.
struct Fragments {
    float (&c)[4];
    const std::uint32_t (&a)[4];
    const std::uint32_t (&b)[2];
};

/// On tensor cores, sums in f32: each warp has warp_rows x warp_columns. f32 elements are rounded to TF32 (10 bits of
/// fraction).
template <typename Element_, int rows_, int columns_, int warp_rows, int warp_columns>
struct TensorTile {
    using Element = Element_;
    using Word = std::uint32_t;
    static constexpr int rows = rows_, columns = columns_;
    static constexpr int warps_across = columns / warp_columns;
    static constexpr int threads = 32 * (rows / warp_rows) * warps_across;
    static constexpr int words = 16, elements_per_word = 4 / sizeof(Element);
    static constexpr int m = warp_rows / 16, n = warp_columns / 8;
    static constexpr int pitch = words + 4;  // 20: the 8 x 4 words that a warp reads at once lie in 32 banks
    struct Shared {
        std::uint32_t a[2][rows][pitch], b[2][columns][pitch];
    };
    struct Accumulators {
        float c[m][n][4];
        std::uint32_t a[m][4], b[n][2];
    };

    static REHEARSE_BOTH Word word(Element first, Element second) {
        if constexpr (elements_per_word == 2) {
            return static_cast<std::uint32_t>(second.bits) << 16 | first.bits;
        } else {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
            std::uint32_t bits;
            asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(bits) : "f"(first));
            return bits;
#else
            return (std::bit_cast<std::uint32_t>(first) + 0x1000U) & ~0x1FFFU;
#endif
        }
    }
    static REHEARSE_BOTH void put_a(Shared& shared, int buffer, int row, int k, Word word) {
        shared.a[buffer][row][k] = word;
    }
    static REHEARSE_BOTH void put_b(Shared& shared, int buffer, int column, int k, Word word) {
        shared.b[buffer][column][k] = word;
    }

    static REHEARSE_BOTH void clear(Accumulators& sums) {
        REHEARSE_UNROLL
        for (int i = 0; i < m; ++i) {
            REHEARSE_UNROLL
            for (int j = 0; j < n; ++j) {
                REHEARSE_UNROLL
                for (int e = 0; e < 4; ++e) sums.c[i][j][e] = 0;
            }
        }
    }
    template <typename Team>
    static REHEARSE_BOTH void multiply(Team& team, int buffer) {
        REHEARSE_UNROLL
        for (int k = 0; k < words; k += 8) {
            team.alone([&, buffer, k](int thread, auto& r) { load(team.shared(), buffer, k, thread, r.sums); });
            REHEARSE_UNROLL
            for (int i = 0; i < m; ++i) {
                REHEARSE_UNROLL
                for (int j = 0; j < n; ++j) {
                    team.template multiply<Element>([i, j](auto& r) -> Fragments {
                        return {r.sums.c[i][j], r.sums.a[i], r.sums.b[j]};
                    });
                }
            }
        }
    }
    template <typename Visit>
    static REHEARSE_BOTH void results(int thread, const Accumulators& sums, Visit visit) {
        const int warp = thread / 32, group = thread % 32 / 4, pair = thread % 4 * 2;
        const int row = warp / warps_across * warp_rows + group, column = warp % warps_across * warp_columns + pair;
        REHEARSE_UNROLL
        for (int i = 0; i < m; ++i) {
            REHEARSE_UNROLL
            for (int j = 0; j < n; ++j) {
                REHEARSE_UNROLL
                for (int e = 0; e < 4; ++e) visit(row + 16 * i + e / 2 * 8, column + 8 * j + e % 2, sums.c[i][j][e]);
            }
        }
    }

private:
    static REHEARSE_BOTH void load(const Shared& shared, int buffer, int k, int thread, Accumulators& sums) {
        const int warp = thread / 32, group = thread % 32 / 4, word = k + thread % 4;
        const int row = warp / warps_across * warp_rows + group, column = warp % warps_across * warp_columns + group;
        REHEARSE_UNROLL
        for (int i = 0; i < m; ++i) {
            REHEARSE_UNROLL
            for (int e = 0; e < 4; ++e) sums.a[i][e] = shared.a[buffer][row + 16 * i + e % 2 * 8][word + e / 2 * 4];
        }
        REHEARSE_UNROLL
        for (int j = 0; j < n; ++j) {
            REHEARSE_UNROLL
            for (int e = 0; e < 2; ++e) sums.b[j][e] = shared.b[buffer][column + 8 * j][word + e * 4];
        }
    }
};

}  // namespace rehearse::kernels::cuda
