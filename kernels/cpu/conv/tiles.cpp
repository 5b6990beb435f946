// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/conv/tiles.hpp"

#include <algorithm>

#include "kernels/cpu/algorithm.hpp"

namespace rehearse::kernels::cpu {
namespace {

constexpr std::int64_t strip_pixels = 512;  // of 16 channels: 32 KiB, about a first-level cache

// Parts of nearly the same size, none above `largest`.
std::int64_t even_part(std::int64_t count, std::int64_t largest) { return divide_up(count, divide_up(count, largest)); }

void cut_blocks(Tiling& t, std::int64_t block_tiles) {
    const auto strips = static_cast<std::int64_t>(t.strips.size());
    const std::int64_t target = even_part(t.tiles, block_tiles);
    for (std::int64_t s = 0; s < strips; ++s) {
        if (t.blocks.empty() || t.blocks.back().tiles + t.strips[s].tiles() > std::max(target, t.strips[s].tiles())) {
            t.blocks.push_back({s, s, t.strips[s].first, 0});
        }
        t.blocks.back().last_strip = s + 1;
        t.blocks.back().tiles += t.strips[s].tiles();
        t.largest_block = std::max(t.largest_block, t.blocks.back().tiles);
    }
}

}  // namespace

Correlation correlation(const Problem& problem) {
    const auto& op = std::get<Conv>(problem.op);
    const Shape out = output_shape(op);
    const Window& w = op.window;
    Correlation c{.batch = problem.batch,
                  .in_channels = op.channels,
                  .in_h = op.height,
                  .in_w = op.width,
                  .out_channels = op.filters,
                  .out_h = out[1],
                  .out_w = out[2],
                  .pad_top = w.pad_top,
                  .pad_left = w.pad_left,
                  .kernel_h = w.kernel_h,
                  .kernel_w = w.kernel_w,
                  .dilation_h = w.dilation_h,
                  .dilation_w = w.dilation_w};
    if (problem.pass == Pass::backward_data) {
        std::swap(c.in_channels, c.out_channels);
        std::swap(c.in_h, c.out_h);
        std::swap(c.in_w, c.out_w);
        c.pad_top = w.dilation_h * (w.kernel_h - 1) - w.pad_top;
        c.pad_left = w.dilation_w * (w.kernel_w - 1) - w.pad_left;
    }
    return c;
}

Tiling tiling(const Correlation& c, const TileShape& tile, std::int64_t block_tiles) {
    const std::int64_t tiles_y = divide_up(c.out_h, tile.out_h), tiles_x = divide_up(c.out_w, tile.out_w);
    const std::int64_t border_h = tile.size - tile.out_h, border_w = tile.size - tile.out_w;
    const std::int64_t fit_x = std::max<std::int64_t>(1, (strip_pixels / tile.size - border_w) / tile.out_w);
    const std::int64_t cols = even_part(tiles_x, std::min(block_tiles, fit_x));
    const std::int64_t band_cols = cols * tile.out_w + border_w;
    const std::int64_t fit_y = std::max<std::int64_t>(1, (strip_pixels / band_cols - border_h) / tile.out_h);
    const std::int64_t rows =
        even_part(tiles_y, std::min(fit_y, std::max<std::int64_t>(1, block_tiles / std::max<std::int64_t>(1, cols))));
    Tiling t;
    t.band_rows = rows * tile.out_h + border_h;
    t.band_cols = band_cols;
    for (std::int64_t n = 0; n < c.batch; ++n) {
        for (std::int64_t y = 0; y < tiles_y; y += rows) {
            for (std::int64_t x = 0; x < tiles_x; x += cols) {
                t.strips.push_back({n, y, x, std::min(rows, tiles_y - y), std::min(cols, tiles_x - x), t.tiles});
                t.tiles += t.strips.back().tiles();
            }
        }
    }
    cut_blocks(t, block_tiles);
    return t;
}

}  // namespace rehearse::kernels::cpu
