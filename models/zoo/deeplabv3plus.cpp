// SPDX-License-Identifier: Apache-2.0
// DeepLabv3+ (Chen et al. 2018) as the climate paper changed it (Kurth et al. 2018, section V.B): a ResNet-50 v2 whose
// last two stages are dilated instead of strided, a pyramid of dilated convolutions, and a decoder of transposed
// convolutions up to the full 768 x 1152. Details from github.com/azrael417/ClimDeepLearn (decoder "deconv1x") and
// TensorFlow's slim.resnet_v2, whose stages stride in their last block.
#include <array>

#include <fmt/format.h>

#include "models/builder.hpp"
#include "models/zoo/zoo.hpp"

namespace rehearse::models {
namespace {

/// The published network, or a small one of the same parts.
struct Size {
    const char* name;
    Shape input;
    std::int64_t width, filters, low_level, skip;  // of the first stage, of pyramid and decoder, of the two side paths
    std::array<int, 4> blocks;
    std::array<std::int64_t, 3> rates;  // of the pyramid
};

struct Dilated {
    std::int64_t stride = 1, rate = 1;
};

Window dilated(std::int64_t kernel, Dilated by) {
    Window window = square(kernel, by.stride, by.rate * (kernel - 1) / 2);
    window.dilation_h = window.dilation_w = by.rate;
    return window;
}

int conv_bn(NetworkBuilder& b, const std::string& name, int from, std::int64_t filters, Window window) {
    const int x = b.batch_norm(name + ".bn", b.conv(name, from, filters, window));
    return b.relu(name + ".relu", x);
}

struct Unit {
    int conv1, out;
};

// Normalized and activated first (He et al. 2016b).
Unit bottleneck(NetworkBuilder& b, const std::string& name, int from, std::int64_t width, Dilated by) {
    const int before = b.relu(name + ".relu0", b.batch_norm(name + ".bn0", from));
    const std::int64_t filters = 4 * width;
    int shortcut = from;
    if (b.shape(from)[0] != filters) shortcut = b.conv(name + ".shortcut", before, filters, square(1, by.stride), true);
    if (shortcut == from && by.stride > 1) shortcut = b.max_pool(name + ".shortcut", from, square(1, by.stride));
    const int conv1 = conv_bn(b, name + ".conv1", before, width, square(1));
    const int conv2 = conv_bn(b, name + ".conv2", conv1, width, dilated(3, by));
    const int conv3 = b.conv(name + ".conv3", conv2, filters, square(1), true);
    return {conv1, b.add(name + ".add", shortcut, conv3)};
}

struct Encoder {
    int low_level, out;  // a quarter and an eighth of the image's size
};

Encoder encoder(NetworkBuilder& b, const Size& size) {
    int x = b.conv("conv1", NetworkBuilder::input, size.width, square(7, 2, 3), true);
    x = b.max_pool("pool1", x, square(3, 2, 1));
    const std::array<std::int64_t, 4> rates{1, 1, 2, 4};  // an eighth is reached: what would stride on is dilated
    int low_level = x;
    for (std::size_t stage = 0; stage < size.blocks.size(); ++stage) {
        for (int i = 0; i < size.blocks[stage]; ++i) {
            const bool last_of_first = stage == 0 && i + 1 == size.blocks[0];
            const Unit unit = bottleneck(b, fmt::format("block{}.{}", stage + 1, i + 1), x, size.width << stage,
                                         {last_of_first ? 2 : 1, rates[stage]});
            if (last_of_first) low_level = unit.conv1;
            x = unit.out;
        }
    }
    return {low_level, x};
}

int pyramid(NetworkBuilder& b, int from, const Size& size) {
    const std::int64_t height = b.shape(from)[1];
    const std::int64_t width = b.shape(from)[2];
    std::vector<int> parts{conv_bn(b, "aspp.conv1", from, size.filters, square(1))};
    for (const std::int64_t rate : size.rates) {
        parts.push_back(conv_bn(b, fmt::format("aspp.rate{}", rate), from, size.filters, dilated(3, {1, rate})));
    }
    const int mean = conv_bn(b, "aspp.mean.conv", b.global_average_pool("aspp.mean", from), size.filters, square(1));
    parts.push_back(b.resize("aspp.mean.resize", mean, height, width));
    return conv_bn(b, "aspp.join", b.concat("aspp.concat", parts), size.filters, square(1));
}

int twice(NetworkBuilder& b, const std::string& name, int from, std::int64_t filters) {
    const Window window{.kernel_h = 3, .kernel_w = 3, .stride_h = 2, .stride_w = 2, .pad_bottom = 1, .pad_right = 1};
    return b.conv_transpose(name, from, filters, window, true);
}

Network build(const Size& size) {
    NetworkBuilder b(size.name, size.input);
    const Encoder encoded = encoder(b, size);
    int x = twice(b, "up4", pyramid(b, encoded.out, size), size.filters);
    x = b.concat("up4.concat", {x, conv_bn(b, "low_level", encoded.low_level, size.low_level, square(1))});
    x = conv_bn(b, "up4.conv1", x, size.filters, square(3, 1, 1));
    x = conv_bn(b, "up4.conv2", x, size.filters, square(3, 1, 1));
    x = twice(b, "up1", twice(b, "up2", x, size.filters), size.filters);
    const int skip = b.conv("skip.conv1", NetworkBuilder::input, size.skip, square(3, 1, 1), true);
    x = b.concat("up1.concat", {x, b.conv("skip.conv2", skip, 2 * size.skip, square(3, 1, 1), true)});
    x = b.conv("up1.conv1", x, size.filters, square(3, 1, 1), true);
    x = b.conv("up1.conv2", x, size.filters, square(3, 1, 1), true);
    b.pixel_loss(b.conv("scores", x, 3, square(1), true), climate_class_weights());
    return b.build();
}

}  // namespace

Network deeplabv3plus() {
    return build({"deeplabv3plus", {16, 768, 1152}, 64, 256, 48, 64, {3, 4, 6, 3}, {12, 24, 36}});
}

// A sixteenth of the width and height; rates that fit into the encoder's 6 x 9.
Network deeplabv3plus_small() {
    return build({"deeplabv3plus-small", {16, 48, 72}, 8, 16, 8, 8, {1, 1, 1, 1}, {1, 2, 3}});
}

}  // namespace rehearse::models
