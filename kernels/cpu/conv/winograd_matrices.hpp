// SPDX-License-Identifier: Apache-2.0
// Lavin and Gray's matrices for 3 x 3 filters (2016, section 4; F(6, 3) after the same construction), one row a point:
// 0, pairs x and -x, infinity. `b` and `a` are written B^T and A in the paper's formula.
#pragma once

#include <array>
#include <cstddef>

namespace rehearse::kernels::cpu {

template <std::size_t rows, std::size_t columns>
using Matrix = std::array<std::array<float, columns>, rows>;

struct Winograd2 {
    static constexpr Matrix<4, 4> b{{{1, 0, -1, 0}, {0, 1, 1, 0}, {0, -1, 1, 0}, {0, -1, 0, 1}}};
    static constexpr Matrix<4, 3> g{{{1, 0, 0}, {0.5F, 0.5F, 0.5F}, {0.5F, -0.5F, 0.5F}, {0, 0, 1}}};
    static constexpr Matrix<4, 2> a{{{1, 0}, {1, 1}, {1, -1}, {0, 1}}};
};

struct Winograd4 {
    static constexpr Matrix<6, 6> b{{{4, 0, -5, 0, 1, 0},
                                     {0, -4, -4, 1, 1, 0},
                                     {0, 4, -4, -1, 1, 0},
                                     {0, -2, -1, 2, 1, 0},
                                     {0, 2, -1, -2, 1, 0},
                                     {0, 4, 0, -5, 0, 1}}};
    static constexpr Matrix<6, 3> g{{{1.0F / 4, 0, 0},
                                     {-1.0F / 6, -1.0F / 6, -1.0F / 6},
                                     {-1.0F / 6, 1.0F / 6, -1.0F / 6},
                                     {1.0F / 24, 1.0F / 12, 1.0F / 6},
                                     {1.0F / 24, -1.0F / 12, 1.0F / 6},
                                     {0, 0, 1}}};
    static constexpr Matrix<6, 4> a{
        {{1, 0, 0, 0}, {1, 1, 1, 1}, {1, -1, 1, -1}, {1, 2, 4, 8}, {1, -2, 4, -8}, {0, 0, 0, 1}}};
};

struct Winograd6 {
    static constexpr Matrix<8, 8> b{{{1, 0, -21.0F / 4, 0, 21.0F / 4, 0, -1, 0},
                                     {0, 1, 1, -17.0F / 4, -17.0F / 4, 1, 1, 0},
                                     {0, -1, 1, 17.0F / 4, -17.0F / 4, -1, 1, 0},
                                     {0, 1.0F / 2, 1.0F / 4, -5.0F / 2, -5.0F / 4, 2, 1, 0},
                                     {0, -1.0F / 2, 1.0F / 4, 5.0F / 2, -5.0F / 4, -2, 1, 0},
                                     {0, 2, 4, -5.0F / 2, -5, 1.0F / 2, 1, 0},
                                     {0, -2, 4, 5.0F / 2, -5, -1.0F / 2, 1, 0},
                                     {0, -1, 0, 21.0F / 4, 0, -21.0F / 4, 0, 1}}};
    static constexpr Matrix<8, 3> g{{{1, 0, 0},
                                     {-2.0F / 9, -2.0F / 9, -2.0F / 9},
                                     {-2.0F / 9, 2.0F / 9, -2.0F / 9},
                                     {1.0F / 90, 1.0F / 45, 2.0F / 45},
                                     {1.0F / 90, -1.0F / 45, 2.0F / 45},
                                     {32.0F / 45, 16.0F / 45, 8.0F / 45},
                                     {32.0F / 45, -16.0F / 45, 8.0F / 45},
                                     {0, 0, 1}}};
    static constexpr Matrix<8, 6> a{{{1, 0, 0, 0, 0, 0},
                                     {1, 1, 1, 1, 1, 1},
                                     {1, -1, 1, -1, 1, -1},
                                     {1, 2, 4, 8, 16, 32},
                                     {1, -2, 4, -8, 16, -32},
                                     {1, 1.0F / 2, 1.0F / 4, 1.0F / 8, 1.0F / 16, 1.0F / 32},
                                     {1, -1.0F / 2, 1.0F / 4, -1.0F / 8, 1.0F / 16, -1.0F / 32},
                                     {0, 0, 0, 0, 0, 1}}};
};

}  // namespace rehearse::kernels::cpu
