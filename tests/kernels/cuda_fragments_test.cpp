// SPDX-License-Identifier: Apache-2.0
// The team that plays tensor cores on the host (cuda_host_team.hpp) held to the PTX ISA's own words, not to tile.hpp's:
// the formulas of its sections, with %laneid, groupID and threadID_in_group as it names them, say which element of
// which matrix a thread's register holds. Factors are whole numbers, so that sums are exact.
#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cstring>
#include <type_traits>
#include <vector>

#include "tests/kernels/cuda_host_team.hpp"

namespace rehearse::kernels::cuda {
namespace {

struct Place {
    int row, col;
    bool operator==(const Place&) const = default;
};

// PTX ISA 9.0, "Matrix Fragments for mma.m16n8k16 with floating point type": elements ai, bi, ci of lane `laneid`.
Place a_of_k16(int laneid, int i) {
    const int group_id = laneid >> 2, thread_in_group = laneid % 4;
    const int row = (0 <= i && i < 2) || (4 <= i && i < 6) ? group_id : group_id + 8;
    return {row, i < 4 ? thread_in_group * 2 + (i & 1) : thread_in_group * 2 + (i & 1) + 8};
}
Place b_of_k16(int laneid, int i) {
    const int group_id = laneid >> 2, thread_in_group = laneid % 4;
    return {i < 2 ? thread_in_group * 2 + (i & 1) : thread_in_group * 2 + (i & 1) + 8, group_id};
}
// The same of each m16n8 shape with sums in f32.
Place c_of(int laneid, int i) {
    const int group_id = laneid >> 2, thread_in_group = laneid % 4;
    return {i < 2 ? group_id : group_id + 8, thread_in_group * 2 + (i & 1)};
}
// "Matrix Fragments for mma.m16n8k8", .f16.
Place a_of_k8(int laneid, int i) {
    const int group_id = laneid >> 2, thread_in_group = laneid % 4;
    return {i < 2 ? group_id : group_id + 8, thread_in_group * 2 + (i & 1)};
}
Place b_of_k8(int laneid, int i) { return {laneid % 4 * 2 + i, laneid >> 2}; }
// The same, .tf32.
Place a_of_tf32(int laneid, int i) {
    const int group_id = laneid >> 2, thread_in_group = laneid % 4;
    return {i == 0 || i == 2 ? group_id : group_id + 8, i == 0 || i == 1 ? thread_in_group : thread_in_group + 4};
}
Place b_of_tf32(int laneid, int i) { return {i == 0 ? laneid % 4 : laneid % 4 + 4, laneid >> 2}; }

// Small, and no two rows or columns alike.
int a_value(int row, int k) { return (row * 7 + k * 3) % 11 - 5; }
int b_value(int k, int column) { return (k * 5 + column * 13) % 9 - 4; }
int product_of(int row, int column, int depth) {
    int sum = 0;
    for (int k = 0; k < depth; ++k) sum += a_value(row, k) * b_value(k, column);
    return sum;
}

struct Warp {
    static constexpr int threads = 32;
    struct Shared {
        Vector rows[32];
    };
    struct Registers {
        float c[4];
        std::uint32_t a[4], b[2];
    };
};

template <typename Element>
void put(std::uint32_t& word, int i, int value) {
    if constexpr (std::is_same_v<Element, float>) {
        word = std::bit_cast<std::uint32_t>(static_cast<float>(value));
    } else {
        const auto bits = std::uint32_t{static_cast<Element>(static_cast<float>(value)).bits};
        word = i % 2 == 0 ? bits : word | bits << 16;  // "elements low to high"
    }
}

template <typename Element>
void expect_product_of_a_warp() {
    constexpr bool tf32 = std::is_same_v<Element, float>;
    constexpr int each = tf32 ? 1 : 2;
    HostTeam<Warp> team;
    team.each([](int lane, Warp::Registers& r) {
        for (int i = 0; i < 4 * each; ++i) {
            const Place at = tf32 ? a_of_tf32(lane, i) : a_of_k16(lane, i);
            put<Element>(r.a[i / each], i, a_value(at.row, at.col));
        }
        for (int i = 0; i < 2 * each; ++i) {
            const Place at = tf32 ? b_of_tf32(lane, i) : b_of_k16(lane, i);
            put<Element>(r.b[i / each], i, b_value(at.row, at.col));
        }
        for (float& c : r.c) c = 1;
    });
    team.multiply<Element>([](Warp::Registers& r) -> Fragments { return {r.c, r.a, r.b}; });
    team.each([](int lane, Warp::Registers& r) {
        for (int i = 0; i < 4; ++i) {
            const Place at = c_of(lane, i);
            EXPECT_EQ(r.c[i], static_cast<float>(1 + product_of(at.row, at.col, 8 * each))) << lane << ' ' << i;
        }
    });
}

TEST(PtxFragments, AWarpMultipliesSixteenBits) {
    expect_product_of_a_warp<Float16>();
    expect_product_of_a_warp<BFloat16>();
}

TEST(PtxFragments, AWarpMultipliesTf32) { expect_product_of_a_warp<float>(); }

// Below sm_80 device.cuh takes registers {0, 1} of a and 0 of b, then {2, 3} and 1, as two products of half the depth.
TEST(PtxFragments, HalvesOfSixteenAreTwoOfEight) {
    for (int lane = 0; lane < 32; ++lane) {
        for (int half = 0; half < 2; ++half) {
            for (int i = 0; i < 4; ++i) {
                const Place small = a_of_k8(lane, i);
                EXPECT_EQ(a_of_k16(lane, 4 * half + i), (Place{small.row, small.col + 8 * half}));
            }
            for (int i = 0; i < 2; ++i) {
                const Place small = b_of_k8(lane, i);
                EXPECT_EQ(b_of_k16(lane, 2 * half + i), (Place{small.row + 8 * half, small.col}));
            }
        }
    }
}

// "Warp-level matrix load instruction: ldmatrix": of .x4, threads 0-7, 8-15, 16-23 and 24-31 hold the addresses of rows
// 0-7 of the first to the fourth matrix; "row i" of each goes to threads 4 i to 4 i + 3, two elements a thread.
TEST(PtxFragments, MatricesAreLoadedByRows) {
    HostTeam<Warp> team;
    const auto number = [](int matrix, int row, int col) {
        return static_cast<std::uint16_t>(64 * matrix + 8 * row + col);
    };
    for (int line = 0; line < 32; ++line) {
        for (int col = 0; col < 8; ++col) team.shared().rows[line].bits[col] = number(line / 8, line % 8, col);
    }
    team.load_matrices([&](int thread, Warp::Registers& r) -> MatrixRow { return {r.a, &team.shared().rows[thread]}; });
    team.each([&](int lane, Warp::Registers& r) {
        for (int matrix = 0; matrix < 4; ++matrix) {
            const int row = lane / 4, col = lane % 4 * 2;
            EXPECT_EQ(r.a[matrix] & 0xFFFFU, number(matrix, row, col));
            EXPECT_EQ(r.a[matrix] >> 16, number(matrix, row, col + 1));
        }
    });
}

// "128-Byte swizzling" as the PTX ISA draws it ("Swizzling modes" of tensors): 16-byte chunk j of row i is that of the
// source that the table names.
constexpr int swizzled[8][8] = {{0, 1, 2, 3, 4, 5, 6, 7}, {1, 0, 3, 2, 5, 4, 7, 6}, {2, 3, 0, 1, 6, 7, 4, 5},
                                {3, 2, 1, 0, 7, 6, 5, 4}, {4, 5, 6, 7, 0, 1, 2, 3}, {5, 4, 7, 6, 1, 0, 3, 2},
                                {6, 7, 4, 5, 2, 3, 0, 1}, {7, 6, 5, 4, 3, 2, 1, 0}};

struct Group {
    static constexpr int threads = 128;
    struct Shared {
        alignas(1024) Vector a[64 * 8];
        alignas(1024) Vector b[128 * 8];
    };
    struct Registers {
        float c[64];
    };
};

TEST(PtxFragments, ARowOfASwizzledMatrixLiesAsDrawn) {
    for (int row = 0; row < 64; ++row) {
        for (int chunk = 0; chunk < 8; ++chunk) {
            EXPECT_EQ(swizzled_at(row, swizzled[row % 8][chunk]), row * 8 + chunk) << row << ' ' << chunk;
        }
    }
}

// "Register Fragments" of wgmma.mma_async.m64nNk16, accumulator D: row and column of element di of a thread.
TEST(PtxFragments, AWarpgroupMultipliesSwizzledMatrices) {
    HostTeam<Group> team;
    const auto lay = [](Vector* to, int rows, auto value) {
        for (int row = 0; row < rows; ++row) {
            for (int chunk = 0; chunk < 8; ++chunk) {
                for (int e = 0; e < 8; ++e) {
                    const int k = 8 * swizzled[row % 8][chunk] + e;
                    to[row * 8 + chunk].bits[e] = static_cast<Float16>(static_cast<float>(value(row, k))).bits;
                }
            }
        }
    };
    lay(team.shared().a, 64, a_value);
    lay(team.shared().b, 128, [](int column, int k) { return b_value(k, column); });
    team.each([](int, Group::Registers& r) {
        for (float& c : r.c) c = 0;
    });
    team.multiply_groups<Float16>([&](int, Group::Registers& r) -> GroupFactors {
        return {r.c, team.shared().a, team.shared().b};
    });
    team.products<0>([](Group::Registers& r) -> float(&)[64] { return r.c; });
    team.each([](int thread, Group::Registers& r) {
        const int warp_id = thread / 32, group_id = thread % 32 >> 2, thread_in_group = thread % 4;
        for (int i = 0; i < 64; ++i) {
            const int row = warp_id * 16 + (i / 2 % 2 == 0 ? group_id : group_id + 8);
            const int col = 8 * (i / 4) + thread_in_group * 2 + (i & 1);
            EXPECT_EQ(r.c[i], static_cast<float>(product_of(row, col, 64))) << thread << ' ' << i;
        }
    });
}

}  // namespace
}  // namespace rehearse::kernels::cuda
