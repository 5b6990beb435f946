// SPDX-License-Identifier: Apache-2.0
// RegNet (Radosavovic et al. 2020): the widths of all blocks lie near a line, rounded to powers of one factor, so that
// blocks of one width are a stage. X as it is, Y with squeeze and excitation; figures of the paper's tables 9 and 10 as
// torchvision has them.
#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>

#include "models/zoo/image_blocks.hpp"
#include "models/zoo/zoo_images.hpp"

namespace rehearse::models {
namespace {

struct Line {
    std::string_view name;
    int blocks;
    double first, slope, factor;
    std::int64_t group;
};
constexpr std::array lines{
    Line{"regnet-x-400mf", 22, 24, 24.48, 2.54, 16},   Line{"regnet-x-800mf", 16, 56, 35.73, 2.28, 16},
    Line{"regnet-x-1.6gf", 18, 80, 34.01, 2.25, 24},   Line{"regnet-x-3.2gf", 25, 88, 26.31, 2.25, 48},
    Line{"regnet-x-8gf", 23, 80, 49.56, 2.88, 120},    Line{"regnet-x-16gf", 22, 216, 55.59, 2.1, 128},
    Line{"regnet-x-32gf", 23, 320, 69.86, 2.0, 168},   Line{"regnet-y-400mf", 16, 48, 27.89, 2.09, 8},
    Line{"regnet-y-800mf", 14, 56, 38.84, 2.4, 16},    Line{"regnet-y-1.6gf", 27, 48, 20.71, 2.65, 24},
    Line{"regnet-y-3.2gf", 21, 80, 42.63, 2.66, 24},   Line{"regnet-y-8gf", 17, 192, 76.82, 2.19, 56},
    Line{"regnet-y-16gf", 18, 200, 106.23, 2.48, 112}, Line{"regnet-y-32gf", 20, 232, 115.89, 2.53, 232},
};

// The width of block `i`.
std::int64_t width_of(const Line& line, int i) {
    const double power = std::round(std::log((line.first + line.slope * i) / line.first) / std::log(line.factor));
    return static_cast<std::int64_t>(std::nearbyint(line.first * std::pow(line.factor, power) / 8)) * 8;
}

int block(NetworkBuilder& b, const std::string& name, int from, std::int64_t width, std::int64_t group, bool first,
          bool squeezes) {
    const std::int64_t before = b.shape(from).front(), stride = first ? 2 : 1;
    int past = from;
    if (first) past = conv_norm(b, name + ".proj", from, width, 1, stride, 1, {""});
    int x = conv_norm(b, name + ".f.a", from, width, 1, 1, 1, {});
    x = conv_norm(b, name + ".f.b", x, width, 3, stride, width / group, {});
    if (squeezes) {
        const auto quarter = static_cast<std::int64_t>(std::nearbyint(0.25 * static_cast<double>(before)));
        x = squeeze_excite(b, name + ".f.se", x, quarter, "relu", "sigmoid");
    }
    x = conv_norm(b, name + ".f.c", x, width, 1, 1, 1, {""});
    return b.relu(name + ".activation", b.add(name + ".add", past, x));
}

}  // namespace

Network regnet(std::string_view name) {
    const Line& line = *std::ranges::find(lines, name, &Line::name);
    NetworkBuilder b(std::string{name}, {3, 224, 224});
    int x = conv_norm(b, "stem", NetworkBuilder::input, 32, 3, 2, 1, {});
    std::int64_t last = 0;
    int stage = 0, in_stage = 0;
    for (int i = 0; i < line.blocks; ++i) {
        const std::int64_t wished = width_of(line, i), group = std::min(line.group, wished);
        const bool first = wished != last;
        last = wished;
        stage += first ? 1 : 0;
        in_stage = first ? 0 : in_stage + 1;
        x = block(b, fmt::format("trunk_output.block{}.block{}-{}", stage, stage, in_stage), x,
                  make_divisible(static_cast<double>(wished), group), group, first, name.find("-y-") != name.npos);
    }
    classify(b, x, "fc", 0);
    return b.build();
}

}  // namespace rehearse::models
