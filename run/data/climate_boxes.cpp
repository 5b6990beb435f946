// SPDX-License-Identifier: Apache-2.0
// Boxes round weather, as the network of Kurth et al. 2017 is asked for them (models/zoo/climatenet.cpp).
#include "run/data/climate_boxes.hpp"

#include <algorithm>
#include <cmath>

#include "core/error.hpp"
#include "core/index.hpp"

namespace rehearse::run {

namespace {

WeatherBox box_of(const std::vector<std::int64_t>& pixels, std::int64_t width, WeatherClass kind) {
    WeatherBox box{.kind = kind, .left = width, .top = pixels.front() / width, .right = 0, .bottom = 0};
    for (const std::int64_t pixel : pixels) {
        box.left = std::min(box.left, pixel % width);
        box.right = std::max(box.right, pixel % width + 1);
        box.top = std::min(box.top, pixel / width);
        box.bottom = std::max(box.bottom, pixel / width + 1);
    }
    return box;
}

// Which step of [0, 1) a number lies in.
std::int32_t step_of(double value) {
    const auto step = static_cast<std::int64_t>(std::floor(value * BoxGrid::steps));
    return static_cast<std::int32_t>(std::clamp<std::int64_t>(step, 0, BoxGrid::steps - 1));
}

}  // namespace

std::vector<WeatherBox> boxes_of(std::span<const std::int32_t> labels, std::int64_t height, std::int64_t width) {
    require(static_cast<std::int64_t>(labels.size()) == height * width, "a label for each pixel");
    std::vector<WeatherBox> boxes;
    std::vector<bool> seen(labels.size());
    for (std::int64_t start = 0; start < height * width; ++start) {
        const std::int32_t kind = labels[at(start)];
        if (kind == background || seen[at(start)]) continue;
        std::vector<bool> mask(labels.size());
        for (std::size_t i = 0; i < mask.size(); ++i) mask[i] = labels[i] == kind;
        const std::vector<std::int64_t> pixels = flood_fill(mask, height, width, start);
        for (const std::int64_t pixel : pixels) seen[at(pixel)] = true;
        boxes.push_back(box_of(pixels, width, static_cast<WeatherClass>(kind)));
    }
    return boxes;
}

std::optional<BoxGrid> box_grid(const SoftmaxLoss& loss, std::int64_t height, std::int64_t width) {
    if (loss.classes != BoxGrid::classes || loss.image.size() != 2 || loss.image[1] != 1) return std::nullopt;
    for (std::int64_t cell = 1; cell <= std::min(height, width); cell *= 2) {
        const BoxGrid grid{height, width, cell};
        if (height % cell == 0 && width % cell == 0 && grid.labels() == loss.image[0]) return grid;
    }
    return std::nullopt;
}

void box_labels(std::span<const WeatherBox> boxes, const BoxGrid& grid, std::span<std::int32_t> labels) {
    const std::int64_t across = grid.width / grid.cell, cells = across * (grid.height / grid.cell);
    require(static_cast<std::int64_t>(labels.size()) == grid.labels(), "a label for each row of scores");
    std::ranges::fill(labels, BoxGrid::ignored);
    std::ranges::fill(labels.first(at(cells)), BoxGrid::nothing);
    for (const WeatherBox& box : boxes) {
        const double x = static_cast<double>(box.left + box.right) / 2,
                     y = static_cast<double>(box.top + box.bottom) / 2;
        const auto column = static_cast<std::int64_t>(x) / grid.cell, row = static_cast<std::int64_t>(y) / grid.cell;
        const std::int64_t in = row * across + column;
        const auto put = [&](std::int64_t item, std::int32_t label) { labels[at(item * cells + in)] = label; };
        const auto cell = static_cast<double>(grid.cell);
        const auto number = [&](std::int64_t item, double value) { put(item, BoxGrid::first_step + step_of(value)); };
        put(0, BoxGrid::something);
        put(1, BoxGrid::first_kind + (box.kind == cyclone ? 1 : 3));  // of depression, cyclone, extratropical, river
        number(2, x / cell - static_cast<double>(column));
        number(3, y / cell - static_cast<double>(row));
        number(4, static_cast<double>(box.right - box.left) / static_cast<double>(grid.width));
        number(5, static_cast<double>(box.bottom - box.top) / static_cast<double>(grid.height));
    }
    labels.back() = BoxGrid::nothing;  // the reconstruction's
}

}  // namespace rehearse::run
