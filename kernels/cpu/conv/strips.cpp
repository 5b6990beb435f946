// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/conv/strips.hpp"

#include <algorithm>

#include "kernels/cpu/algorithm.hpp"

namespace rehearse::kernels::cpu {

std::vector<RowStrip> cut_into_strips(const Sweep& sweep, std::int64_t panel, std::int64_t floats) {
    std::vector<RowStrip> strips;
    for (std::size_t g = 0; g < sweep.grids.size(); ++g) {
        const Grid& grid = sweep.grids[g];
        const std::int64_t most = std::max<std::int64_t>(1, floats / (grid.columns * panel));
        const std::int64_t rows = divide_up(grid.rows, divide_up(grid.rows, most));
        for (std::int64_t y = 0; y < grid.rows; y += rows) strips.push_back({g, y, std::min(rows, grid.rows - y)});
    }
    return strips;
}

std::int64_t most_pixels(const Sweep& sweep, const std::vector<RowStrip>& strips) {
    std::int64_t most = 0;
    for (const RowStrip& strip : strips) most = std::max(most, strip.rows * sweep.grids[strip.grid].columns);
    return most;
}

std::vector<std::vector<TapAt>> taps_of_grids(const Sweep& sweep, std::int64_t lanes, std::int64_t panel) {
    std::vector<std::vector<TapAt>> of_grids;
    for (const Grid& grid : sweep.grids) {
        std::vector<TapAt> taps;
        for (const Tap& tap : grid.taps) taps.push_back({tap.offset * lanes, tap.index * panel});
        of_grids.push_back(taps);
    }
    return of_grids;
}

void store(const StripStore& to, const RowStrip& strip, const float* summed, float* turned) {
    const Grid& grid = to.sweep.grids[strip.grid];
    const std::int64_t width = to.sweep.out_width;
    const std::int64_t channel = to.sweep.out_pixels();
    float* const out = to.out + grid.plane * to.sweep.out_height * width;
    const std::int64_t pixels = strip.rows * grid.columns;
    if (grid.rows == to.sweep.out_height && grid.columns == width) {  // rows without gaps
        to.simd.transpose(summed, to.panel, pixels, to.channels, out + strip.first * width, channel);
        return;
    }
    to.simd.transpose(summed, to.panel, pixels, to.channels, turned, pixels);
    for (std::int64_t c = 0; c < to.channels; ++c) {
        for (std::int64_t i = 0; i < strip.rows; ++i) {
            const float* const from = turned + c * pixels + i * grid.columns;
            const std::int64_t y = grid.at.first_y + (strip.first + i) * grid.at.step_y;
            float* const row = out + c * channel + y * width + grid.at.first_x;
            for (std::int64_t j = 0; j < grid.columns; ++j) row[j * grid.at.step_x] = from[j];
        }
    }
}

}  // namespace rehearse::kernels::cpu
