// SPDX-License-Identifier: Apache-2.0
// DeepCAM of MLPerf HPC: DeepLabv3+ (Chen et al. 2018) with an aligned Xception as its encoder, down to a sixteenth of
// the 768 x 1152 fields, and a decoder of transposed convolutions. Sizes from the reference implementation
// (github.com/azrael417/mlperf-deepcam, src/deepCam/architecture/deeplab_xception.py, output stride 16).
#include <array>

#include <fmt/format.h>

#include "models/builder.hpp"
#include "models/zoo/zoo.hpp"
#include "models/zoo/zoo_replayed.hpp"

namespace rehearse::models {
namespace {

Window dilated(std::int64_t kernel, std::int64_t stride, std::int64_t rate) {
    Window window = square(kernel, stride, rate * (kernel - 1) / 2);
    window.dilation_h = window.dilation_w = rate;
    return window;
}

int bn_relu(NetworkBuilder& b, const std::string& name, int from) {
    return b.relu(name + ".relu", b.batch_norm(name + ".bn", from));
}

int conv_bn_relu(NetworkBuilder& b, const std::string& name, int from, std::int64_t filters, Window window) {
    return bn_relu(b, name, b.conv(name, from, filters, window));
}

// A 3x3 filter for each channel, then products over the channels.
int separable(NetworkBuilder& b, const std::string& name, int from, std::int64_t filters, std::int64_t stride = 1,
              std::int64_t rate = 1) {
    const std::int64_t channels = b.shape(from)[0];
    const int x = b.conv(name + ".depth", from, channels, dilated(3, stride, rate), false, channels);
    return b.conv(name + ".point", x, filters, square(1));
}

struct Block {
    std::vector<std::int64_t> filters;  // of its normalized separable convolutions
    std::int64_t stride = 1;            // of a last one that is not normalized
    bool last = false;                  // which is there without a stride, too
    bool relu_first = true;
};

// Convolutions, each normalized, with ReLU before it; beside them a shortcut, a 1x1 convolution where sizes change.
int block(NetworkBuilder& b, const std::string& name, int from, const Block& size) {
    const std::int64_t filters = size.filters.back();
    int x = from;
    for (std::size_t i = 0; i < size.filters.size(); ++i) {
        const std::string part = fmt::format("{}.sep{}", name, i + 1);
        if (i > 0 || size.relu_first) x = b.relu(part + ".relu", x);
        x = b.batch_norm(part + ".bn", separable(b, part, x, size.filters[i]));
    }
    if (size.stride > 1 || size.last) x = separable(b, name + ".last", x, filters, size.stride);
    int shortcut = from;
    if (size.stride > 1 || b.shape(from)[0] != filters) {
        shortcut = b.conv(name + ".shortcut", from, filters, square(1, size.stride));
        shortcut = b.batch_norm(name + ".shortcut.bn", shortcut);
    }
    return b.add(name + ".add", x, shortcut);
}

struct Encoded {
    int low_level, out;  // a quarter and a sixteenth of the image's size
};

Encoded xception(NetworkBuilder& b) {
    int x = conv_bn_relu(b, "conv1", NetworkBuilder::input, 32, square(3, 2, 1));
    x = conv_bn_relu(b, "conv2", x, 64, square(3, 1, 1));
    const int low_level = block(b, "block1", x, {.filters = {128, 128}, .stride = 2, .relu_first = false});
    x = block(b, "block2", low_level, {.filters = {256, 256}, .stride = 2});
    x = block(b, "block3", x, {.filters = {728, 728}, .stride = 2});
    for (int i = 4; i < 20; ++i) x = block(b, fmt::format("block{}", i), x, {.filters = {728, 728, 728}});
    x = block(b, "block20", x, {.filters = {728, 1024}, .last = true});
    x = bn_relu(b, "conv3", separable(b, "conv3", x, 1536, 1, 2));
    x = bn_relu(b, "conv4", separable(b, "conv4", x, 1536, 1, 2));
    return {low_level, bn_relu(b, "conv5", separable(b, "conv5", x, 2048, 1, 2))};
}

// The mean's scale and shift of its own stand as a normalization: as many weights.
int pyramid(NetworkBuilder& b, int from) {
    constexpr std::int64_t filters = 256;
    const std::int64_t height = b.shape(from)[1], width = b.shape(from)[2];
    std::vector<int> parts{conv_bn_relu(b, "aspp1", from, filters, square(1))};
    for (const std::int64_t rate : std::array{6, 12, 18}) {
        parts.push_back(conv_bn_relu(b, fmt::format("aspp.rate{}", rate), from, filters, dilated(3, 1, rate)));
    }
    const int mean = conv_bn_relu(b, "mean.conv", b.global_average_pool("mean", from), filters, square(1));
    parts.push_back(b.resize("mean.tile", mean, height, width));
    return conv_bn_relu(b, "join", b.concat("aspp.concat", parts), filters, square(1));
}

int twice(NetworkBuilder& b, const std::string& name, int from, std::int64_t filters) {
    const Window window{.kernel_h = 3, .kernel_w = 3, .stride_h = 2, .stride_w = 2, .pad_top = 1, .pad_left = 1};
    return b.conv_transpose(name, from, filters, window);
}

}  // namespace

Network deepcam() {
    NetworkBuilder b("deepcam", {16, 768, 1152});
    const Encoded encoded = xception(b);
    int x = pyramid(b, encoded.out);
    const int low_level = conv_bn_relu(b, "low_level", encoded.low_level, 48, square(1));
    x = bn_relu(b, "up8", twice(b, "up8", x, 256));
    x = bn_relu(b, "up4", twice(b, "up4", x, 256));
    x = conv_bn_relu(b, "up4.conv1", b.concat("up4.concat", {x, low_level}), 256, square(3, 1, 1));
    x = conv_bn_relu(b, "up4.conv2", x, 256, square(3, 1, 1));
    x = b.conv("up4.conv3", x, 256, square(1), true);
    x = bn_relu(b, "up2", twice(b, "up2", x, 256));
    b.pixel_loss(twice(b, "up1", x, 3), climate_class_weights());
    return b.build();
}

}  // namespace rehearse::models
