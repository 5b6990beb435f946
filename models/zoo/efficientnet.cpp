// SPDX-License-Identifier: Apache-2.0
// EfficientNet (Tan and Le 2019): blocks of a 1x1 convolution that widens, one that looks at each channel alone, a
// squeeze and excitation, and a 1x1 that narrows; wider, deeper and on larger images from B0 to B7. As torchvision has
// them, whose images are larger than the paper's for B2 (288 for 260). Of stochastic depth nothing is left out: a step
// is costed with all blocks.
#include <array>
#include <cmath>

#include <fmt/format.h>

#include "models/zoo/image_blocks.hpp"
#include "models/zoo/zoo_images.hpp"

namespace rehearse::models {
namespace {

struct Stage {
    std::int64_t expand, kernel, stride, channels, layers;
};
constexpr std::array<Stage, 7> stages{{{1, 3, 1, 16, 1},
                                       {6, 3, 2, 24, 2},
                                       {6, 5, 2, 40, 2},
                                       {6, 3, 2, 80, 3},
                                       {6, 5, 1, 112, 3},
                                       {6, 5, 2, 192, 4},
                                       {6, 3, 1, 320, 1}}};
struct Scale {
    double width, depth;
    std::int64_t image;
    double dropped, epsilon, momentum;
};
constexpr std::array<Scale, 8> scales{{{1.0, 1.0, 224, 0.2, 1e-5, 0.1},
                                       {1.0, 1.1, 240, 0.2, 1e-5, 0.1},
                                       {1.1, 1.2, 288, 0.3, 1e-5, 0.1},
                                       {1.2, 1.4, 300, 0.3, 1e-5, 0.1},
                                       {1.4, 1.8, 380, 0.4, 1e-5, 0.1},
                                       {1.6, 2.2, 456, 0.4, 1e-3, 0.01},
                                       {1.8, 2.6, 528, 0.5, 1e-3, 0.01},
                                       {2.0, 3.1, 600, 0.5, 1e-3, 0.01}}};

int block(NetworkBuilder& b, const std::string& name, int from, const Stage& stage, std::int64_t stride,
          std::int64_t filters, const ConvStyle& style) {
    const std::int64_t channels = b.shape(from).front();
    const std::int64_t wide = make_divisible(static_cast<double>(channels * stage.expand), 8);
    int part = 0;
    const auto next = [&] { return fmt::format("{}.block.{}", name, part++); };
    int x = from;
    if (wide != channels) x = conv_norm(b, next(), x, wide, 1, 1, 1, style);
    x = conv_norm(b, next(), x, wide, stage.kernel, stride, wide, style);
    x = squeeze_excite(b, next(), x, std::max<std::int64_t>(1, channels / 4), "silu", "sigmoid");
    x = conv_norm(b, next(), x, filters, 1, 1, 1, {"", style.epsilon, style.momentum});
    return stride == 1 && channels == filters ? b.add(name + ".add", from, x) : x;
}

}  // namespace

Network efficientnet(int which) {
    const Scale& scale = scales.at(static_cast<std::size_t>(which));
    const ConvStyle style{"silu", scale.epsilon, scale.momentum};
    const auto wide = [&](std::int64_t channels) {
        return make_divisible(static_cast<double>(channels) * scale.width, 8);
    };
    NetworkBuilder b(fmt::format("efficientnet-b{}", which), {3, scale.image, scale.image});
    int x = conv_norm(b, "features.0", NetworkBuilder::input, wide(32), 3, 2, 1, style);
    for (std::size_t s = 0; s < stages.size(); ++s) {
        const auto layers = static_cast<std::int64_t>(std::ceil(static_cast<double>(stages[s].layers) * scale.depth));
        for (std::int64_t i = 0; i < layers; ++i)
            x = block(b, fmt::format("features.{}.{}", s + 1, i), x, stages[s], i == 0 ? stages[s].stride : 1,
                      wide(stages[s].channels), style);
    }
    x = conv_norm(b, "features.8", x, 4 * wide(stages.back().channels), 1, 1, 1, style);
    classify(b, x, "classifier", scale.dropped);
    return b.build();
}

}  // namespace rehearse::models
