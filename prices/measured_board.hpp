// SPDX-License-Identifier: Apache-2.0
// A board whose kernels were measured beside the algorithms that ran.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

#include "prices/price_model.hpp"

namespace rehearse {

struct BoardKernel {
    KernelSample sample;
    std::size_t family = 0;  // of a convolution, that ran: its place in prices::families()
    bool network = false;    // sizes of a network, not random ones
};

/// Its kernels of one kind.
struct MeasuredBoard {
    std::string name;  // as devices.toml names it
    std::string kind = "conv2d";
    std::string like;   // the price model that was measured on its chip, or the nearest one
    DeviceSheet sheet;  // at the clock that its power sustains
    FlopRate boost_peak;
    std::vector<BoardKernel> kernels;
    std::vector<Expert> experts;  // what was learned about such boards
    double band = 1;              // of prices from its own kernels: boards that throttle are foretold less well
    double kind_band = 1;         // of prices from any board's
    std::string source;
};

namespace prices {
/// Boards differ by more than their data sheets say (clocks, libraries' tuning): one standard deviation of the
/// logarithm, at least; measured on four boards, whose medians lie 0.04 to 0.16 apart (docs/kernel_prices.md).
inline constexpr double between_boards = 0.1;
}  // namespace prices

/// What ran of a board's convolution, at its features there.
RanFamily ran(const BoardKernel& kernel, const DeviceSheet& sheet);

/// Of `count` values at most so many, evenly: their places.
inline std::vector<std::size_t> every(std::size_t count, std::size_t at_most) {
    const std::size_t step = at_most >= count ? 1 : (count + at_most - 1) / at_most;
    std::vector<std::size_t> places;
    for (std::size_t i = 0; i < count; i += step) places.push_back(i);
    return places;
}

}  // namespace rehearse
