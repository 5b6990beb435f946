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
    std::size_t family = 0;  // that ran: its place in prices::families()
};

struct MeasuredBoard {
    std::string name;   // as devices.toml names it
    std::string like;   // the price model that was measured on its chip, or the nearest one
    DeviceSheet sheet;  // at the clock that its power sustains
    FlopRate boost_peak;
    std::vector<BoardKernel> kernels;
    std::vector<Expert> experts;  // what was learned about such boards
    double band = 1;
    std::string source;
};

/// Of `count` values at most so many, evenly: their places.
inline std::vector<std::size_t> every(std::size_t count, std::size_t at_most) {
    const std::size_t step = std::max<std::size_t>(1, (count + at_most - 1) / at_most);
    std::vector<std::size_t> places;
    for (std::size_t i = 0; i < count; i += step) places.push_back(i);
    return places;
}

}  // namespace rehearse
