// SPDX-License-Identifier: Apache-2.0
// The gradient of the weights by the same minimal filtering. A tile's output is A^T [(G g G^T) * (B^T d B)] A, point by
// point, so its derivative by g is G^T [(A dy A^T) * (B^T d B)] G: the output's gradient is transformed by A,
// multiplied with the transformed source as (m + 2)^2 products that sum over tiles (weight_gradient.hpp, a group a
// point), and what comes out is transformed once, by G.
#pragma once

#include "kernels/cuda/winograd.hpp"

namespace rehearse::kernels::cuda {

/// to {points, filters, tiles} of the output's gradient {images, filters, out_height, out_width}.
template <int m>
struct WinogradDifferences : WinogradShape {
    static constexpr int n = m + 2;
    Values diff;
    float* to = nullptr;

    REHEARSE_BOTH Blocks blocks() const { return {divide_up(tiles(), threads), filters}; }
    template <typename Team>
    REHEARSE_BOTH void run(Team& team, const Block& block) const {
        each(team, block, tiles(), [&](std::int64_t tile) { transform(tile, block.y); });
    }

private:
    REHEARSE_BOTH void transform(std::int64_t tile, std::int64_t filter) const {
        const auto [image, down, across] = place(tile);
        const std::int32_t top = down * m, left = across * m;
        const std::int64_t plane = (image * filters + filter) * out_height * out_width;
        float rows[n][m] = {};  // A dy
        REHEARSE_UNROLL
        for (int y = 0; y < m; ++y) {
            REHEARSE_UNROLL
            for (int x = 0; x < m; ++x) {
                const bool in = top + y < out_height && left + x < out_width;
                const float value = in ? diff.at(plane + (top + y) * out_width + left + x) : 0.0F;
                REHEARSE_UNROLL
                for (int i = 0; i < n; ++i) rows[i][x] += WinogradRows<m>::target(y, i) * value;
            }
        }
        REHEARSE_UNROLL
        for (int i = 0; i < n; ++i) {
            REHEARSE_UNROLL
            for (int j = 0; j < n; ++j) {
                float sum = 0;
                REHEARSE_UNROLL
                for (int x = 0; x < m; ++x) sum += WinogradRows<m>::target(x, j) * rows[i][x];
                to[((i * n + j) * std::int64_t{filters} + filter) * tiles() + tile] = sum;
            }
        }
    }
};

/// From sums {splits, points, filters, channels}, which are added up in their order, to weights {filters, channels, 3,
/// 3}.
template <int m>
struct WinogradGradients : WinogradShape {
    static constexpr int n = m + 2;
    const float* partial = nullptr;
    std::int32_t splits = 1;
    Values to;

    REHEARSE_BOTH Blocks blocks() const { return {divide_up(weight_count(), threads)}; }
    template <typename Team>
    REHEARSE_BOTH void run(Team& team, const Block& block) const {
        each(team, block, weight_count(), [&](std::int64_t weight) { transform(weight); });
    }

private:
    REHEARSE_BOTH float point(std::int64_t weight, int at) const {
        float sum = 0;
        for (std::int64_t split = 0; split < splits; ++split) {
            sum += partial[(split * n * n + at) * weight_count() + weight];
        }
        return sum;
    }
    REHEARSE_BOTH void transform(std::int64_t weight) const {
        float rows[3][n] = {};  // G^T times the sums
        REHEARSE_UNROLL
        for (int i = 0; i < n; ++i) {
            REHEARSE_UNROLL
            for (int j = 0; j < n; ++j) {
                const float sum = point(weight, i * n + j);
                REHEARSE_UNROLL
                for (int y = 0; y < 3; ++y) rows[y][j] += WinogradRows<m>::weights(i, y) * sum;
            }
        }
        REHEARSE_UNROLL
        for (int y = 0; y < 3; ++y) {
            REHEARSE_UNROLL
            for (int x = 0; x < 3; ++x) {
                float sum = 0;
                REHEARSE_UNROLL
                for (int j = 0; j < n; ++j) sum += WinogradRows<m>::weights(j, x) * rows[y][j];
                to.put(weight * 9 + y * 3 + x, sum);
            }
        }
    }
};

}  // namespace rehearse::kernels::cuda
