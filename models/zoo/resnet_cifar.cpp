// SPDX-License-Identifier: Apache-2.0
// ResNet-32 for CIFAR-10 (He et al. 2016, section 4.2): 6n + 2 layers with n = 5, shortcuts without parameters
// (option A): where the image halves, every second pixel is kept and the new channels are zero.
#include <fmt/format.h>

#include "models/builder.hpp"
#include "models/zoo/zoo.hpp"

namespace rehearse::models {
namespace {

int shortcut(NetworkBuilder& b, const std::string& name, int from, std::int64_t filters, std::int64_t stride) {
    if (stride == 1) return from;
    const std::int64_t missing = filters - b.shape(from)[0];
    const int sampled = b.average_pool(name + ".sample", from, square(1, stride));
    return b.channel_pad(name + ".pad", sampled, missing / 2, missing - missing / 2);
}

int basic_block(NetworkBuilder& b, const std::string& name, int from, std::int64_t filters, std::int64_t stride) {
    int x = b.conv(name + ".conv1", from, filters, square(3, stride, 1));
    x = b.relu(name + ".relu1", b.batch_norm(name + ".bn1", x));
    x = b.conv(name + ".conv2", x, filters, square(3, 1, 1));
    x = b.batch_norm(name + ".bn2", x);
    x = b.add(name + ".add", x, shortcut(b, name, from, filters, stride));
    return b.relu(name + ".relu2", x);
}

}  // namespace

Network resnet32() {
    NetworkBuilder b("resnet32", {3, 32, 32});
    int x = b.conv("conv1", NetworkBuilder::input, 16, square(3, 1, 1));
    x = b.relu("relu1", b.batch_norm("bn1", x));
    for (int stage = 0; stage < 3; ++stage)
        for (int block = 0; block < 5; ++block)
            x = basic_block(b, fmt::format("layer{}.{}", stage + 1, block), x, 16 << stage,
                            stage > 0 && block == 0 ? 2 : 1);
    x = b.flatten("flatten", b.global_average_pool("pool", x));
    b.loss(b.dense("fc", x, 10));
    return b.build();
}

}  // namespace rehearse::models
