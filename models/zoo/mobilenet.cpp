// SPDX-License-Identifier: Apache-2.0
// MobileNet (Howard et al. 2017, table 1): every 3x3 convolution is one a channel, then a 1x1 over the channels.
#include <array>

#include <fmt/format.h>

#include "models/builder.hpp"
#include "models/zoo/zoo.hpp"

namespace rehearse::models {
namespace {

int conv_bn(NetworkBuilder& b, const std::string& name, int from, std::int64_t filters, Window window,
            std::int64_t groups = 1) {
    const int x = b.batch_norm(name + ".bn", b.conv(name, from, filters, window, false, groups));
    return b.relu(name + ".relu", x);
}

struct Separable {
    std::int64_t filters, stride;
};

}  // namespace

Network mobilenet_v1() {
    NetworkBuilder b("mobilenet-v1", {3, 224, 224});
    const std::array<Separable, 13> blocks{{{64, 1},
                                            {128, 2},
                                            {128, 1},
                                            {256, 2},
                                            {256, 1},
                                            {512, 2},
                                            {512, 1},
                                            {512, 1},
                                            {512, 1},
                                            {512, 1},
                                            {512, 1},
                                            {1024, 2},
                                            {1024, 1}}};
    int x = conv_bn(b, "conv1", NetworkBuilder::input, 32, square(3, 2, 1));
    for (std::size_t i = 0; i < blocks.size(); ++i) {
        const std::int64_t channels = b.shape(x)[0];
        x = conv_bn(b, fmt::format("depthwise{}", i + 1), x, channels, square(3, blocks[i].stride, 1), channels);
        x = conv_bn(b, fmt::format("pointwise{}", i + 1), x, blocks[i].filters, square(1));
    }
    x = b.flatten("flatten", b.global_average_pool("pool", x));
    b.loss(b.dense("fc", x, 1000));
    return b.build();
}

}  // namespace rehearse::models
