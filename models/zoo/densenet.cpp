// SPDX-License-Identifier: Apache-2.0
// DenseNet-121 (Huang et al. 2017, table 1): growth 32, each layer reads all before it through a 1x1 of 128.
#include <array>

#include <fmt/format.h>

#include "models/builder.hpp"
#include "models/zoo/zoo.hpp"

namespace rehearse::models {
namespace {

constexpr std::int64_t growth = 32;

int bn_relu_conv(NetworkBuilder& b, const std::string& name, int from, std::int64_t filters, Window window) {
    return b.conv(name + ".conv", b.relu(name + ".relu", b.batch_norm(name + ".bn", from)), filters, window);
}

}  // namespace

Network densenet121() {
    NetworkBuilder b("densenet121", {3, 224, 224});
    int x = b.batch_norm("bn1", b.conv("conv1", NetworkBuilder::input, 64, square(7, 2, 3)));
    x = b.max_pool("pool1", b.relu("relu1", x), square(3, 2, 1));
    const std::array<int, 4> blocks{6, 12, 24, 16};
    for (std::size_t block = 0; block < blocks.size(); ++block) {
        std::vector<int> parts{x};
        for (int i = 0; i < blocks[block]; ++i) {
            const std::string name = fmt::format("block{}.{}", block + 1, i + 1);
            const int narrow = bn_relu_conv(b, name + ".1", x, 4 * growth, square(1));
            parts.push_back(bn_relu_conv(b, name + ".2", narrow, growth, square(3, 1, 1)));
            x = b.concat(name + ".concat", parts);
        }
        if (block + 1 == blocks.size()) break;
        const std::string name = fmt::format("transition{}", block + 1);
        x = bn_relu_conv(b, name, x, b.shape(x)[0] / 2, square(1));
        x = b.average_pool(name + ".pool", x, square(2, 2));
    }
    x = b.relu("relu5", b.batch_norm("bn5", x));
    b.loss(b.dense("fc", b.flatten("flatten", b.global_average_pool("pool5", x)), 1000));
    return b.build();
}

}  // namespace rehearse::models
