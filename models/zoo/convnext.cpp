// SPDX-License-Identifier: Apache-2.0
// ConvNeXt (Liu et al. 2022), as torchvision has it: a 7x7 convolution of each channel, then two dense layers over the
// channels of each pixel, for which the image is turned and turned back. Stochastic depth costs no block.
#include <array>

#include <fmt/format.h>

#include "models/zoo/image_blocks.hpp"
#include "models/zoo/zoo_images.hpp"

namespace rehearse::models {
namespace {

int turned(NetworkBuilder& b, const std::string& name, int from, const std::vector<std::int64_t>& axes) {
    const Shape shape = b.shape(from);
    Shape to;
    for (const std::int64_t axis : axes) to.push_back(shape[static_cast<std::size_t>(axis)]);
    return b.layer(name, Rearrangement{"transpose", {shape}, to, axes}, {from});
}

int seen_as(NetworkBuilder& b, const std::string& name, int from, const Shape& shape) {
    return b.layer(name, Flatten{b.shape(from), shape}, {from});
}

// Layer normalization over the channels of each pixel.
int norm_of_pixels(NetworkBuilder& b, const std::string& name, int from) {
    const Shape shape = b.shape(from);
    const std::int64_t pixels = shape[1] * shape[2];
    int x = turned(b, name + ".turn", from, {1, 2, 0});
    x = b.layer(name, LayerNorm{pixels, shape[0]}, {seen_as(b, name + ".rows", x, {pixels, shape[0]})});
    return turned(b, name + ".back", seen_as(b, name + ".image", x, {shape[1], shape[2], shape[0]}), {2, 0, 1});
}

int block(NetworkBuilder& b, const std::string& name, int from) {
    const Shape shape = b.shape(from);
    const std::int64_t width = shape[0], pixels = shape[1] * shape[2];
    int x = b.conv(name + ".block.0", from, width, square(7, 1, 3), true, width);
    x = seen_as(b, name + ".rows", turned(b, name + ".block.1", x, {1, 2, 0}), {pixels, width});
    x = b.layer(name + ".block.2", LayerNorm{pixels, width}, {x});
    x = b.layer(name + ".block.3", MatMul{pixels, 4 * width, width}, {x});
    x = function_of(b, name + ".block.4", x, "gelu");
    x = b.layer(name + ".block.5", MatMul{pixels, width, 4 * width}, {x});
    x = seen_as(b, name + ".image", x, {shape[1], shape[2], width});
    x = turned(b, name + ".block.6", x, {2, 0, 1});
    x = b.layer(name + ".layer_scale", Elementwise{"mul", shape, {shape}, {{width, 1, 1}}}, {x});
    return b.add(name + ".add", from, x);
}

Network convnext(const char* name, const std::array<int, 4>& blocks, std::int64_t width) {
    NetworkBuilder b(name, {3, 224, 224});
    int x = b.conv("features.0.0", NetworkBuilder::input, width, square(4, 4), true);
    x = norm_of_pixels(b, "features.0.1", x);
    for (std::size_t stage = 0; stage < blocks.size(); ++stage) {
        if (stage > 0) {
            x = norm_of_pixels(b, fmt::format("features.{}.0", 2 * stage), x);
            x = b.conv(fmt::format("features.{}.1", 2 * stage), x, width << stage, square(2, 2), true);
        }
        for (int i = 0; i < blocks[stage]; ++i) x = block(b, fmt::format("features.{}.{}", 2 * stage + 1, i), x);
    }
    x = b.flatten("flatten", b.global_average_pool("avgpool", x));
    x = b.layer("classifier.0", LayerNorm{1, b.shape(x).front()}, {x});
    b.loss(b.dense("classifier.2", x, 1000));
    return b.build();
}

}  // namespace

Network convnext_tiny() { return convnext("convnext-tiny", {3, 3, 9, 3}, 96); }
Network convnext_small() { return convnext("convnext-small", {3, 3, 27, 3}, 96); }
Network convnext_base() { return convnext("convnext-base", {3, 3, 27, 3}, 128); }
Network convnext_large() { return convnext("convnext-large", {3, 3, 27, 3}, 192); }

}  // namespace rehearse::models
