// SPDX-License-Identifier: Apache-2.0
// MobileNetV2 (Sandler et al. 2018, table 2) and V3 (Howard et al. 2019, tables 1 and 2), as torchvision has them.
#include <array>
#include <span>

#include <fmt/format.h>

#include "models/zoo/image_blocks.hpp"
#include "models/zoo/zoo_images.hpp"

namespace rehearse::models {
namespace {

// V2: expansion, channels, blocks, stride of the first.
struct Inverted {
    std::int64_t expand, channels, blocks, stride;
};
constexpr std::array<Inverted, 7> inverted{
    {{1, 16, 1, 1}, {6, 24, 2, 2}, {6, 32, 3, 2}, {6, 64, 4, 2}, {6, 96, 3, 1}, {6, 160, 3, 2}, {6, 320, 1, 1}}};

int inverted_residual(NetworkBuilder& b, const std::string& name, int from, std::int64_t expand, std::int64_t filters,
                      std::int64_t stride) {
    const ConvStyle style{"relu6"};
    const std::int64_t channels = b.shape(from).front(), wide = channels * expand;
    int part = 0, x = from;
    if (expand != 1) x = conv_norm(b, fmt::format("{}.conv.{}", name, part++), x, wide, 1, 1, 1, style);
    x = conv_norm(b, fmt::format("{}.conv.{}", name, part++), x, wide, 3, stride, wide, style);
    x = b.conv(fmt::format("{}.conv.{}", name, part), x, filters, square(1));
    x = b.batch_norm(fmt::format("{}.conv.{}", name, part + 1), x);
    return stride == 1 && channels == filters ? b.add(name + ".add", from, x) : x;
}

// V3: window, channels between, channels after, squeeze and excitation, HardSwish for ReLU, stride.
struct Bneck {
    std::int64_t kernel, wide, filters;
    bool squeezes, swish;
    std::int64_t stride;
};
constexpr std::array<Bneck, 15> large{{{3, 16, 16, false, false, 1},
                                       {3, 64, 24, false, false, 2},
                                       {3, 72, 24, false, false, 1},
                                       {5, 72, 40, true, false, 2},
                                       {5, 120, 40, true, false, 1},
                                       {5, 120, 40, true, false, 1},
                                       {3, 240, 80, false, true, 2},
                                       {3, 200, 80, false, true, 1},
                                       {3, 184, 80, false, true, 1},
                                       {3, 184, 80, false, true, 1},
                                       {3, 480, 112, true, true, 1},
                                       {3, 672, 112, true, true, 1},
                                       {5, 672, 160, true, true, 2},
                                       {5, 960, 160, true, true, 1},
                                       {5, 960, 160, true, true, 1}}};
constexpr std::array<Bneck, 11> small{{{3, 16, 16, true, false, 2},
                                       {3, 72, 24, false, false, 2},
                                       {3, 88, 24, false, false, 1},
                                       {5, 96, 40, true, true, 2},
                                       {5, 240, 40, true, true, 1},
                                       {5, 240, 40, true, true, 1},
                                       {5, 120, 48, true, true, 1},
                                       {5, 144, 48, true, true, 1},
                                       {5, 288, 96, true, true, 2},
                                       {5, 576, 96, true, true, 1},
                                       {5, 576, 96, true, true, 1}}};

ConvStyle style_of(const char* function) { return {function, 1e-3, 0.01}; }

int bneck(NetworkBuilder& b, const std::string& name, int from, const Bneck& block) {
    const std::int64_t channels = b.shape(from).front();
    const ConvStyle style = style_of(block.swish ? "hardswish" : "relu");
    int part = 0, x = from;
    const auto next = [&] { return fmt::format("{}.block.{}", name, part++); };
    if (block.wide != channels) x = conv_norm(b, next(), x, block.wide, 1, 1, 1, style);
    x = conv_norm(b, next(), x, block.wide, block.kernel, block.stride, block.wide, style);
    if (block.squeezes)
        x = squeeze_excite(b, next(), x, make_divisible(static_cast<double>(block.wide / 4), 8), "relu", "hardsigmoid");
    x = conv_norm(b, next(), x, block.filters, 1, 1, 1, style_of(""));
    return block.stride == 1 && channels == block.filters ? b.add(name + ".add", from, x) : x;
}

Network mobilenet_v3(const char* name, std::span<const Bneck> blocks, std::int64_t last) {
    NetworkBuilder b(name, {3, 224, 224});
    const ConvStyle swish = style_of("hardswish");
    int x = conv_norm(b, "features.0", NetworkBuilder::input, 16, 3, 2, 1, swish);
    int index = 1;
    for (const Bneck& block : blocks) x = bneck(b, fmt::format("features.{}", index++), x, block);
    x = conv_norm(b, fmt::format("features.{}", index), x, 6 * blocks.back().filters, 1, 1, 1, swish);
    x = b.dense("classifier.0", b.flatten("flatten", b.global_average_pool("avgpool", x)), last);
    x = b.dropout("classifier.2", function_of(b, "classifier.1", x, "hardswish"), 0.8);
    b.loss(b.dense("classifier.3", x, 1000));
    return b.build();
}

}  // namespace

Network mobilenet_v2() {
    NetworkBuilder b("mobilenet-v2", {3, 224, 224});
    int x = conv_norm(b, "features.0", NetworkBuilder::input, 32, 3, 2, 1, {"relu6"});
    int index = 1;
    for (const Inverted& stage : inverted)
        for (std::int64_t i = 0; i < stage.blocks; ++i)
            x = inverted_residual(b, fmt::format("features.{}", index++), x, stage.expand, stage.channels,
                                  i == 0 ? stage.stride : 1);
    x = conv_norm(b, fmt::format("features.{}", index), x, 1280, 1, 1, 1, {"relu6"});
    classify(b, x, "classifier", 0.2);
    return b.build();
}

Network mobilenet_v3_large() { return mobilenet_v3("mobilenet-v3-large", large, 1280); }
Network mobilenet_v3_small() { return mobilenet_v3("mobilenet-v3-small", small, 1024); }

}  // namespace rehearse::models
