// SPDX-License-Identifier: Apache-2.0
// DeepLabv3+ (Chen et al. 2018) as the climate paper changed it (Kurth et al. 2018, section V.B): a ResNet-50 v2 whose
// last two stages are dilated instead of strided, a pyramid of dilated convolutions, and a decoder of transposed
// convolutions up to the full 768 x 1152. Details from github.com/azrael417/ClimDeepLearn (decoder "deconv1x") and
// TensorFlow's slim.resnet_v2, whose stages stride in their last block.
#include <array>

#include <fmt/format.h>

#include "models/builder.hpp"
#include "models/zoo.hpp"

namespace rehearse::models {
namespace {

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

Encoder encoder(NetworkBuilder& b) {
    int x = b.conv("conv1", NetworkBuilder::input, 64, square(7, 2, 3), true);
    x = b.max_pool("pool1", x, square(3, 2, 1));
    const std::array<int, 4> blocks{3, 4, 6, 3};
    const std::array<std::int64_t, 4> rates{1, 1, 2, 4};  // an eighth is reached: what would stride on is dilated
    int low_level = x;
    for (std::size_t stage = 0; stage < blocks.size(); ++stage) {
        for (int i = 0; i < blocks[stage]; ++i) {
            const bool last_of_first = stage == 0 && i + 1 == blocks[0];
            const Unit unit = bottleneck(b, fmt::format("block{}.{}", stage + 1, i + 1), x, 64 << stage,
                                         {last_of_first ? 2 : 1, rates[stage]});
            if (last_of_first) low_level = unit.conv1;
            x = unit.out;
        }
    }
    return {low_level, x};
}

int pyramid(NetworkBuilder& b, int from) {
    const std::int64_t height = b.shape(from)[1];
    const std::int64_t width = b.shape(from)[2];
    std::vector<int> parts{conv_bn(b, "aspp.conv1", from, 256, square(1))};
    for (const std::int64_t rate : {12, 24, 36}) {
        parts.push_back(conv_bn(b, fmt::format("aspp.rate{}", rate), from, 256, dilated(3, {1, rate})));
    }
    const int mean = conv_bn(b, "aspp.mean.conv", b.global_average_pool("aspp.mean", from), 256, square(1));
    parts.push_back(b.resize("aspp.mean.resize", mean, height, width));
    return conv_bn(b, "aspp.join", b.concat("aspp.concat", parts), 256, square(1));
}

int twice(NetworkBuilder& b, const std::string& name, int from) {
    const Window window{.kernel_h = 3, .kernel_w = 3, .stride_h = 2, .stride_w = 2, .pad_bottom = 1, .pad_right = 1};
    return b.conv_transpose(name, from, 256, window, true);
}

}  // namespace

Network deeplabv3plus() {
    NetworkBuilder b("deeplabv3plus", {16, 768, 1152});
    const Encoder encoded = encoder(b);
    int x = twice(b, "up4", pyramid(b, encoded.out));
    x = b.concat("up4.concat", {x, conv_bn(b, "low_level", encoded.low_level, 48, square(1))});
    x = conv_bn(b, "up4.conv1", x, 256, square(3, 1, 1));
    x = conv_bn(b, "up4.conv2", x, 256, square(3, 1, 1));
    x = twice(b, "up1", twice(b, "up2", x));
    const int skip = b.conv("skip.conv1", NetworkBuilder::input, 64, square(3, 1, 1), true);
    x = b.concat("up1.concat", {x, b.conv("skip.conv2", skip, 128, square(3, 1, 1), true)});
    x = b.conv("up1.conv1", x, 256, square(3, 1, 1), true);
    x = b.conv("up1.conv2", x, 256, square(3, 1, 1), true);
    b.pixel_loss(b.conv("scores", x, 3, square(1), true), climate_class_weights());
    return b.build();
}

}  // namespace rehearse::models
