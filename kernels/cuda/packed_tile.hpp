// SPDX-License-Identifier: Apache-2.0
// Tiles of 16-bit matrix products whose factors lie in memory as rows of 16-byte vectors along k: copied to shared
// memory without passing through registers, some steps ahead.
#pragma once

#include <cstdint>

#include "kernels/cuda/tile.hpp"

namespace rehearse::kernels::cuda {

/// Eight 16-bit numbers, which memory and shared memory take in one access.
struct alignas(16) Vector {
    std::uint16_t bits[8];
};

/// A row of eight 16-bit numbers in shared memory that this thread names, and the four words that it gets: with g =
/// lane / 4 and t = lane % 4, word t of the rows that lanes g, 8 + g, 16 + g and 24 + g name (PTX ISA, ldmatrix .x4);
/// transposed (.trans), numbers g of the rows that lanes 2 t and 2 t + 1, and those 8, 16 and 24 further, name.
struct MatrixRow {
    std::uint32_t (&to)[4];
    const void* row;
};

/// By mma.sync: from sm_80 on. A warp has warp_rows x warp_columns.
template <typename Element_, int rows_, int columns_, int warp_rows, int warp_columns>
struct PackedTile {
    using Element = Element_;
    static constexpr int rows = rows_, columns = columns_, stages = 4, vectors = 4;  // of a row, a step
    static constexpr int warps_across = columns / warp_columns;
    static constexpr int threads = 32 * (rows / warp_rows) * warps_across;
    static constexpr int m = warp_rows / 16, n = warp_columns / 8;
    static_assert(n % 2 == 0);
    static constexpr bool by_warpgroups = false;
    static constexpr int pitch = vectors + 1;  // 80 bytes: eight rows that are read at once lie in 32 banks
    struct Shared {
        Vector a[stages][rows][pitch], b[stages][columns][pitch];
    };
    struct Accumulators {
        float c[m][n][4];
        std::uint32_t a[m][4], b[n / 2][4];
    };

    static REHEARSE_BOTH Vector& a_at(Shared& shared, int stage, int row, int vector) {
        return shared.a[stage][row][vector];
    }
    static REHEARSE_BOTH Vector& b_at(Shared& shared, int stage, int column, int vector) {
        return shared.b[stage][column][vector];
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
    /// Of a: rows 0 to 7 and 8 to 15 of the first vector, then of the second. Of b: both vectors of eight columns, then
    /// of the next eight.
    template <typename Team>
    static REHEARSE_BOTH void multiply(Team& team, int stage) {
        REHEARSE_UNROLL
        for (int k = 0; k < vectors; k += 2) {
            REHEARSE_UNROLL
            for (int i = 0; i < m; ++i) {
                team.load_matrices([&, stage, i, k](int thread, auto& r) -> MatrixRow {
                    const int lane = thread % 32, row = first_row(thread) + 16 * i + lane % 16;
                    return {r.sums.a[i], &team.shared().tile.a[stage][row][k + lane / 16]};
                });
            }
            REHEARSE_UNROLL
            for (int j = 0; j < n / 2; ++j) {
                team.load_matrices([&, stage, j, k](int thread, auto& r) -> MatrixRow {
                    const int lane = thread % 32, column = first_column(thread) + 16 * j + lane / 16 * 8 + lane % 8;
                    return {r.sums.b[j], &team.shared().tile.b[stage][column][k + lane / 8 % 2]};
                });
            }
            multiply_loaded(team);
        }
    }
    template <typename Visit>
    static REHEARSE_BOTH void results(int thread, const Accumulators& sums, Visit visit) {
        const int row = first_row(thread) + thread % 32 / 4, column = first_column(thread) + thread % 4 * 2;
        REHEARSE_UNROLL
        for (int i = 0; i < m; ++i) {
            REHEARSE_UNROLL
            for (int j = 0; j < n; ++j) {
                REHEARSE_UNROLL
                for (int e = 0; e < 4; ++e) visit(row + 16 * i + e / 2 * 8, column + 8 * j + e % 2, sums.c[i][j][e]);
            }
        }
    }

protected:
    template <typename Team>
    static REHEARSE_BOTH void multiply_loaded(Team& team) {
        REHEARSE_UNROLL
        for (int i = 0; i < m; ++i) {
            REHEARSE_UNROLL
            for (int j = 0; j < n; ++j) {
                team.template multiply<Element>([i, j](auto& r) -> Fragments {
                    return {r.sums.c[i][j], r.sums.a[i],
                            reinterpret_cast<const std::uint32_t(&)[2]>(r.sums.b[j / 2][j % 2 * 2])};
                });
            }
        }
    }
    static REHEARSE_BOTH int first_row(int thread) { return thread / 32 / warps_across * warp_rows; }
    static REHEARSE_BOTH int first_column(int thread) { return thread / 32 % warps_across * warp_columns; }
};

/// The same of factors that lie the other way in memory: of each of `depth` steps of k, a vector of eight rows or
/// columns. They are transposed on their way out of shared memory (ldmatrix .trans).
template <typename Element_, int rows_, int columns_, int warp_rows, int warp_columns>
struct TurnedTile : PackedTile<Element_, rows_, columns_, warp_rows, warp_columns> {
    using Base = PackedTile<Element_, rows_, columns_, warp_rows, warp_columns>;
    using Base::m, Base::n, Base::stages;
    static constexpr int depth = 32, across = rows_ / 8;
    static_assert(rows_ == columns_);
    static constexpr int pitch =
        across + 1;  // 272 or 144 bytes: eight steps of k that are read at once lie in 32 banks
    struct Shared {
        Vector a[stages][depth][pitch], b[stages][depth][pitch];
    };

    /// Of a: both vectors of rows in the first eight steps, then in the next. Of b: both eights of a vector of columns,
    /// then of the next.
    template <typename Team>
    static REHEARSE_BOTH void multiply(Team& team, int stage) {
        REHEARSE_UNROLL
        for (int k = 0; k < depth; k += 16) {
            REHEARSE_UNROLL
            for (int i = 0; i < m; ++i) {
                team.load_transposed([&, stage, i, k](int thread, auto& r) -> MatrixRow {
                    const int lane = thread % 32, step = k + lane / 16 * 8 + lane % 8;
                    const int vector = Base::first_row(thread) / 8 + 2 * i + lane / 8 % 2;
                    return {r.sums.a[i], &team.shared().tile.a[stage][step][vector]};
                });
            }
            REHEARSE_UNROLL
            for (int j = 0; j < n / 2; ++j) {
                team.load_transposed([&, stage, j, k](int thread, auto& r) -> MatrixRow {
                    const int lane = thread % 32, step = k + lane / 8 % 2 * 8 + lane % 8;
                    const int vector = Base::first_column(thread) / 8 + 2 * j + lane / 16;
                    return {r.sums.b[j], &team.shared().tile.b[stage][step][vector]};
                });
            }
            Base::multiply_loaded(team);
        }
    }
};

/// What a warpgroup, 128 threads, multiplies at once: c {64, 128} += a {64, 64} b {128, 64}^T. Both lie in shared
/// memory as swizzled_at() says, from whole 1024 bytes on. Of c a thread has, with w = its warp, g and t as Fragments
/// has them, at 4 j + e: row 16 w + g + 8 (e / 2), column 8 j + 2 t + e % 2 (PTX ISA, "Register fragments and shared
/// memory matrix layouts" of wgmma).
struct GroupFactors {
    float (&c)[64];
    const Vector *a, *b;
};

/// Where vector `vector` of a row of eight lies, counted in vectors: "128-byte swizzle", in which the number of a row's
/// vector and that of the row in its group of eight are combined by exclusive or, so that no bank is asked twice.
REHEARSE_BOTH constexpr int swizzled_at(int row, int vector) { return row * 8 + (vector ^ (row % 8)); }

/// By wgmma: sm_90a alone. Two warpgroups, one over the other or side by side, of 64 x 128 each.
template <typename Element_, int rows_, int columns_>
struct GroupTile {
    using Element = Element_;
    static constexpr int rows = rows_, columns = columns_, vectors = 8, threads = 256;
    static constexpr int stages = rows == 64 ? 2 : 3;  // so that two blocks share a multiprocessor's 227 KiB
    static_assert(rows * columns == 2 * 64 * 128 && rows % 64 == 0 && columns % 128 == 0);
    static constexpr bool by_warpgroups = true;
    struct Shared {
        alignas(1024) Vector a[stages][rows * vectors];
        alignas(1024) Vector b[stages][columns * vectors];
    };
    struct Accumulators {
        float c[64];
    };

    static REHEARSE_BOTH Vector& a_at(Shared& shared, int stage, int row, int vector) {
        return shared.a[stage][swizzled_at(row, vector)];
    }
    static REHEARSE_BOTH Vector& b_at(Shared& shared, int stage, int column, int vector) {
        return shared.b[stage][swizzled_at(column, vector)];
    }
    static REHEARSE_BOTH void clear(Accumulators& sums) {
        REHEARSE_UNROLL
        for (int i = 0; i < 64; ++i) sums.c[i] = 0;
    }
    template <typename Team>
    static REHEARSE_BOTH void multiply(Team& team, int stage) {
        team.template multiply_groups<Element>([&, stage](int thread, auto& r) -> GroupFactors {
            auto& tile = team.shared().tile;
            return {r.sums.c, tile.a[stage] + first_row(thread) * vectors,
                    tile.b[stage] + first_column(thread) * vectors};
        });
    }
    template <int left, typename Team>
    static REHEARSE_BOTH void wait(Team& team) {
        team.template products<left>([](auto& r) -> float(&)[64] { return r.sums.c; });
    }
    template <typename Visit>
    static REHEARSE_BOTH void results(int thread, const Accumulators& sums, Visit visit) {
        const int row = first_row(thread) + thread % 128 / 32 * 16 + thread % 32 / 4;
        const int column = first_column(thread) + thread % 4 * 2;
        REHEARSE_UNROLL
        for (int j = 0; j < 16; ++j) {
            REHEARSE_UNROLL
            for (int e = 0; e < 4; ++e) visit(row + e / 2 * 8, column + 8 * j + e % 2, sums.c[4 * j + e]);
        }
    }

private:
    static REHEARSE_BOTH int first_row(int thread) { return rows == 64 ? 0 : thread / 128 * 64; }
    static REHEARSE_BOTH int first_column(int thread) { return rows == 64 ? thread / 128 * 128 : 0; }
};

}  // namespace rehearse::kernels::cuda
