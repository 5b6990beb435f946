// SPDX-License-Identifier: Apache-2.0
// Winograd's minimal filtering, F(m x m, 3 x 3) with m of 2 or 4 (Lavin and Gray 2016, sections 4.1 and 4.3): source
// tiles and weights are transformed, multiplied point by point as (m + 2)^2 matrix products (implicit_gemm.hpp, a group
// a point), and transformed back. Everything in between is f32. The gradient of the weights: winograd_weights.hpp.
#pragma once

#include "kernels/cuda/implicit_gemm.hpp"
#include "kernels/cuda/values.hpp"

namespace rehearse::kernels::cuda {

/// Rows of B^T, G and A^T.
template <int m>
struct WinogradRows;
template <>
struct WinogradRows<2> {
    static REHEARSE_BOTH constexpr float source(int i, int j) {
        constexpr float rows[4][4] = {{1, 0, -1, 0}, {0, 1, 1, 0}, {0, -1, 1, 0}, {0, 1, 0, -1}};
        return rows[i][j];
    }
    static REHEARSE_BOTH constexpr float weights(int i, int j) {
        constexpr float rows[4][3] = {{1, 0, 0}, {.5F, .5F, .5F}, {.5F, -.5F, .5F}, {0, 0, 1}};
        return rows[i][j];
    }
    static REHEARSE_BOTH constexpr float target(int i, int j) {
        constexpr float rows[2][4] = {{1, 1, 1, 0}, {0, 1, -1, -1}};
        return rows[i][j];
    }
};
template <>
struct WinogradRows<4> {
    static REHEARSE_BOTH constexpr float source(int i, int j) {
        constexpr float rows[6][6] = {{4, 0, -5, 0, 1, 0},  {0, -4, -4, 1, 1, 0}, {0, 4, -4, -1, 1, 0},
                                      {0, -2, -1, 2, 1, 0}, {0, 2, -1, -2, 1, 0}, {0, 4, 0, -5, 0, 1}};
        return rows[i][j];
    }
    static REHEARSE_BOTH constexpr float weights(int i, int j) {
        constexpr float rows[6][3] = {{1.F / 4, 0, 0},
                                      {-1.F / 6, -1.F / 6, -1.F / 6},
                                      {-1.F / 6, 1.F / 6, -1.F / 6},
                                      {1.F / 24, 1.F / 12, 1.F / 6},
                                      {1.F / 24, -1.F / 12, 1.F / 6},
                                      {0, 0, 1}};
        return rows[i][j];
    }
    static REHEARSE_BOTH constexpr float target(int i, int j) {
        constexpr float rows[4][6] = {
            {1, 1, 1, 1, 1, 0}, {0, 1, -1, 2, -2, 0}, {0, 1, 1, 4, 4, 0}, {0, 1, -1, 8, -8, 1}};
        return rows[i][j];
    }
};

/// What the transforms share: a thread a tile (of the channel or filter that is block.y) or a weight. Images are {images, channels, height, width} -> {images, filters, out_height,
/// out_width}; tiles are counted row by row, image after image.
struct WinogradShape {
    std::int32_t images = 0, channels = 0, filters = 0, height = 0, width = 0, out_height = 0, out_width = 0;
    std::int32_t pad_top = 0, pad_left = 0, tiles_down = 0, tiles_across = 0;
    Divisor image_tiles, row_tiles;  // tiles_down * tiles_across, tiles_across
    REHEARSE_BOTH std::int64_t tiles() const { return std::int64_t{images} * tiles_down * tiles_across; }
    struct Place {
        std::int64_t image;
        std::int32_t down, across;  // tiles above and to the left
    };
    REHEARSE_BOTH Place place(std::int64_t tile) const {
        const std::int64_t image = tile / image_tiles;
        const auto inside = static_cast<std::int32_t>(tile - image * tiles_down * tiles_across);
        const std::int32_t down = inside / row_tiles;
        return {image, down, inside - down * tiles_across};
    }

    static constexpr int threads = 128;
    struct Shared {};
    struct Registers {};
    REHEARSE_BOTH std::int64_t weight_count() const { return std::int64_t{filters} * channels; }

    /// Calls `transform(i)` for each i of the block's that is below `count`.
    template <typename Team, typename Transform>
    static REHEARSE_BOTH void each(Team& team, const Block& block, std::int64_t count, Transform transform) {
        team.alone([&](int thread, auto&) {
            const std::int64_t i = block.x * threads + thread;
            if (i < count) transform(i);
        });
    }
};

/// to {points, channels, tiles}.
template <int m>
struct WinogradSource : WinogradShape {
    static constexpr int n = m + 2;
    Values source;
    float* to = nullptr;

    REHEARSE_BOTH Blocks blocks() const { return {divide_up(tiles(), threads), channels}; }
    template <typename Team>
    REHEARSE_BOTH void run(Team& team, const Block& block) const {
        each(team, block, tiles(), [&](std::int64_t tile) { transform(tile, block.y); });
    }

private:
    REHEARSE_BOTH void transform(std::int64_t tile, std::int64_t channel) const {
        const auto [image, down, across] = place(tile);
        const std::int32_t top = down * m - pad_top, left = across * m - pad_left;
        const std::int64_t plane = (image * channels + channel) * height * width;
        float rows[n][n] = {};  // B^T d, column by column of d
        REHEARSE_UNROLL
        for (int x = 0; x < n; ++x) {
            float column[n];
            REHEARSE_UNROLL
            for (int y = 0; y < n; ++y) {
                const bool in = static_cast<std::uint32_t>(top + y) < static_cast<std::uint32_t>(height) &&
                                static_cast<std::uint32_t>(left + x) < static_cast<std::uint32_t>(width);
                column[y] = in ? source.at(plane + (top + y) * width + left + x) : 0.0F;
            }
            REHEARSE_UNROLL
            for (int i = 0; i < n; ++i) {
                REHEARSE_UNROLL
                for (int y = 0; y < n; ++y) rows[i][x] += WinogradRows<m>::source(i, y) * column[y];
            }
        }
        REHEARSE_UNROLL
        for (int i = 0; i < n; ++i) {
            REHEARSE_UNROLL
            for (int j = 0; j < n; ++j) {
                float sum = 0;
                REHEARSE_UNROLL
                for (int x = 0; x < n; ++x) sum += WinogradRows<m>::source(j, x) * rows[i][x];
                to[((i * n + j) * channels + channel) * tiles() + tile] = sum;
            }
        }
    }
};

/// to {points, filters, channels} of weights {filters, channels, 3, 3}; `mirrored`: of the convolution that leads back,
/// whose filters are these channels: weights {channels, filters, 3, 3} turned by half a circle.
template <int m>
struct WinogradWeights : WinogradShape {
    static constexpr int n = m + 2;
    Values weights;
    float* to = nullptr;
    bool mirrored = false;

    REHEARSE_BOTH Blocks blocks() const { return {divide_up(weight_count(), threads)}; }
    template <typename Team>
    REHEARSE_BOTH void run(Team& team, const Block& block) const {
        each(team, block, weight_count(), [&](std::int64_t i) {
            const auto weight = static_cast<std::int32_t>(i);  // there are fewer than 2^31
            transform(weight / channels, weight % channels);
        });
    }

private:
    REHEARSE_BOTH void transform(std::int64_t filter, std::int64_t channel) const {
        const std::int64_t at = mirrored ? channel * filters + filter : filter * channels + channel;
        float rows[n][3] = {};
        REHEARSE_UNROLL
        for (int i = 0; i < n; ++i) {
            REHEARSE_UNROLL
            for (int y = 0; y < 3; ++y) {
                REHEARSE_UNROLL
                for (int x = 0; x < 3; ++x) {
                    const float tap = weights.at(at * 9 + (mirrored ? 8 - y * 3 - x : y * 3 + x));
                    rows[i][x] += WinogradRows<m>::weights(i, y) * tap;
                }
            }
        }
        REHEARSE_UNROLL
        for (int i = 0; i < n; ++i) {
            REHEARSE_UNROLL
            for (int j = 0; j < n; ++j) {
                float sum = 0;
                REHEARSE_UNROLL
                for (int x = 0; x < 3; ++x) sum += WinogradRows<m>::weights(j, x) * rows[i][x];
                to[((i * n + j) * std::int64_t{filters} + filter) * channels + channel] = sum;
            }
        }
    }
};

/// From products {points, filters, tiles} to the target, with its bias where there is one.
template <int m>
struct WinogradTarget : WinogradShape {
    static constexpr int n = m + 2;
    const float* products = nullptr;
    Values bias, target;

    REHEARSE_BOTH Blocks blocks() const { return {divide_up(tiles(), threads), filters}; }
    template <typename Team>
    REHEARSE_BOTH void run(Team& team, const Block& block) const {
        each(team, block, tiles(), [&](std::int64_t tile) { transform(tile, block.y); });
    }

private:
    REHEARSE_BOTH void transform(std::int64_t tile, std::int64_t filter) const {
        const auto [image, down, across] = place(tile);
        const std::int32_t top = down * m, left = across * m;
        float rows[m][n] = {};
        REHEARSE_UNROLL
        for (int y = 0; y < n; ++y) {
            REHEARSE_UNROLL
            for (int x = 0; x < n; ++x) {
                const float product = products[((y * n + x) * std::int64_t{filters} + filter) * tiles() + tile];
                REHEARSE_UNROLL
                for (int i = 0; i < m; ++i) rows[i][x] += WinogradRows<m>::target(i, y) * product;
            }
        }
        const float offset = bias ? bias.at(filter) : 0.0F;
        const std::int64_t plane = (image * filters + filter) * out_height * out_width;
        REHEARSE_UNROLL
        for (int i = 0; i < m; ++i) {
            REHEARSE_UNROLL
            for (int j = 0; j < m; ++j) {
                if (top + i >= out_height || left + j >= out_width) continue;
                float sum = offset;
                REHEARSE_UNROLL
                for (int x = 0; x < n; ++x) sum += WinogradRows<m>::target(j, x) * rows[i][x];
                target.put(plane + (top + i) * out_width + left + j, sum);
            }
        }
    }
};

}  // namespace rehearse::kernels::cuda
