// SPDX-License-Identifier: Apache-2.0
// Labels of a network that puts boxes round weather and makes its input again (models/zoo/climatenet.cpp).
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "core/op.hpp"
#include "run/data/climate.hpp"

namespace rehearse::run {

/// Pixels from `left` and `top` to before `right` and `bottom`.
struct WeatherBox {
    WeatherClass kind = background;
    std::int64_t left = 0, top = 0, right = 0, bottom = 0;
    bool operator==(const WeatherBox&) const = default;
};

/// One round all the pixels of a class that hang together (neighbours of four), in the order of their first pixels.
std::vector<WeatherBox> boxes_of(std::span<const std::int32_t> labels, std::int64_t height, std::int64_t width);

/// The grid of square cells in which the network looks for boxes, at most one in each. It has six labels a cell, cells
/// of one item after the other: whether there is a box, of which kind, where in the cell its centre lies (across,
/// down) and how much of the map it covers (across, down), the last four in `steps` of their range; then one of the
/// reconstruction. Items of a cell without a box are `ignored`.
struct BoxGrid {
    std::int64_t height = 0, width = 0, cell = 1;  // pixels
    static constexpr std::int32_t nothing = 0, something = 1, first_kind = 2, kinds = 4, first_step = 6, steps = 8,
                                  ignored = 14, classes = 15;
    std::int64_t labels() const { return 6 * (height / cell) * (width / cell) + 1; }
};

/// The grid that a loss asks for, of cells whose sides are powers of two; nothing where it asks for something else.
std::optional<BoxGrid> box_grid(const SoftmaxLoss& loss, std::int64_t height, std::int64_t width);

/// What the network is asked for of such a map. Of several boxes with their centres in one cell the last one counts.
void box_labels(std::span<const WeatherBox> boxes, const BoxGrid& grid, std::span<std::int32_t> labels);

}  // namespace rehearse::run
