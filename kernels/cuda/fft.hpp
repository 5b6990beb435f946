// SPDX-License-Identifier: Apache-2.0
// Convolution by Fourier transforms (Mathieu, Henaff and LeCun 2014). Images, their padding included, and kernels,
// their dilation included, are laid into planes of one size; what is summed over (channels, filters or images) is
// summed frequency by frequency. No sum reaches around a plane, as none has a pixel beyond the padded image.
#pragma once

#include "kernels/cuda/values.hpp"

namespace rehearse::kernels::cuda {

/// Planes of height * width numbers, and their transforms of height * (std::int64_t{width} / 2 + 1) complex ones, real
/// part first.
struct Planes {
    std::int64_t height = 1;
    Divisor width, area;
    Planes() = default;
    Planes(std::int64_t down, std::int64_t across) : height(down), width(across), area(down * across) {}
    REHEARSE_BOTH std::int64_t pixels() const { return area; }
    REHEARSE_BOTH std::int64_t frequencies() const { return height * (std::int64_t{width} / 2 + 1); }
};

/// Where a tensor's elements {plane, rows, columns} lie in a plane: every `step` of them from `first` on.
struct Laid {
    std::int64_t rows = 1;
    Divisor columns;
    std::int64_t first_row = 0, first_column = 0;
    Divisor row_step, column_step;
    REHEARSE_BOTH std::int64_t at(const Planes& planes, std::int64_t row, std::int64_t column) const {
        return (first_row + row * row_step) * planes.width + first_column + column * column_step;
    }
};

/// Tensor to planes: zeros where nothing is laid.
struct LayIntoPlanes : PointWise {
    Values from;
    float* to = nullptr;
    Planes planes;
    Laid laid;
    template <typename Team>
    REHEARSE_BOTH void run(Team& team, const Block& block) const {
        each_point(team, block, [&](std::int64_t i) {
            const std::int64_t plane = i / planes.area, pixel = i - plane * planes.pixels();
            const std::int64_t h = pixel / planes.width - laid.first_row, w = pixel % planes.width - laid.first_column;
            const std::int64_t row = h / laid.row_step, column = w / laid.column_step;
            const bool there = h >= 0 && w >= 0 && row < laid.rows && column < laid.columns &&
                               row * laid.row_step == h && column * laid.column_step == w;
            to[i] = there ? from.at((plane * laid.rows + row) * laid.columns + column) : 0.0F;
        });
    }
};

/// Planes back to a tensor, times `factor`, and with a bias that of plane % biases.
struct TakeFromPlanes : PointWise {
    const float* from = nullptr;
    Values to, bias;
    Divisor biases, area;  // area: laid.rows * laid.columns
    float factor = 1;
    Planes planes;
    Laid laid;
    template <typename Team>
    REHEARSE_BOTH void run(Team& team, const Block& block) const {
        each_point(team, block, [&](std::int64_t i) {
            const std::int64_t plane = i / area, at = i - plane * area;
            const std::int64_t row = at / laid.columns, column = at - row * laid.columns;
            float value = factor * from[plane * planes.pixels() + laid.at(planes, row, column)];
            if (bias) value += bias.at(plane % biases);
            to.put(i, value);
        });
    }
};

/// product[i][j] = sum over r of a[i][r] b[j][r], of spectra, b's conjugated if asked; a and b lie i * a_outer + r *
/// a_inner planes from their beginning. A thread has one frequency and `at_once` of j.
struct MultiplySpectra : PointWise {
    static constexpr int at_once = 4;
    const float* a = nullptr;
    const float* b = nullptr;
    float* product = nullptr;
    Divisor frequencies, parts;  // parts: columns by at_once
    std::int64_t rows = 1, columns = 1, terms = 1;
    std::int64_t a_outer = 0, a_inner = 0, b_outer = 0, b_inner = 0;
    bool conjugate_b = false, swapped = false;  // swapped: product[j][i]

    template <typename Team>
    REHEARSE_BOTH void run(Team& team, const Block& block) const {
        each_point(team, block, [&](std::int64_t point) {
            const std::int64_t f = point % frequencies, rest = point / frequencies;
            const std::int64_t i = rest / parts, j = rest % parts * at_once;
            float real[at_once] = {}, imaginary[at_once] = {};
            const float sign = conjugate_b ? -1.0F : 1.0F;
            for (std::int64_t r = 0; r < terms; ++r) {
                const float* const x = a + 2 * ((i * a_outer + r * a_inner) * frequencies + f);
                REHEARSE_UNROLL
                for (int n = 0; n < at_once; ++n) {
                    if (j + n >= columns) break;
                    const float* const y = b + 2 * (((j + n) * b_outer + r * b_inner) * frequencies + f);
                    real[n] += x[0] * y[0] - sign * x[1] * y[1];
                    imaginary[n] += x[1] * y[0] + sign * x[0] * y[1];
                }
            }
            REHEARSE_UNROLL
            for (int n = 0; n < at_once; ++n) {
                if (j + n >= columns) break;
                const std::int64_t plane = swapped ? (j + n) * rows + i : i * columns + j + n;
                float* const to = product + 2 * (plane * frequencies + f);
                to[0] = real[n], to[1] = imaginary[n];
            }
        });
    }
    void count_points() {
        parts = divide_up(columns, at_once);
        count = frequencies * rows * parts;
    }
};

}  // namespace rehearse::kernels::cuda
