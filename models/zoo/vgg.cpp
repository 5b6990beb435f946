// SPDX-License-Identifier: Apache-2.0
// VGG-16 and VGG-19 (Simonyan and Zisserman 2015, table 1, columns D and E), and what Chainer makes of the former on
// images of another size.
#include <array>

#include <fmt/format.h>

#include "models/builder.hpp"
#include "models/zoo/zoo.hpp"
#include "models/zoo/zoo_replayed.hpp"

namespace rehearse::models {
namespace {

// Five blocks of 3x3 convolutions, each block ended by a pool that halves the image, and keeps its last window where
// the side is odd.
Network vgg(const std::string& name, const std::array<int, 5>& convolutions, std::int64_t side = 224) {
    constexpr std::array<int, 5> filters{64, 128, 256, 512, 512};
    NetworkBuilder b(name, {3, side, side});
    int x = NetworkBuilder::input;
    for (std::size_t block = 0; block < filters.size(); ++block) {
        for (int i = 1; i <= convolutions[block]; ++i) {
            x = b.conv(fmt::format("conv{}_{}", block + 1, i), x, filters[block], square(3, 1, 1), true);
            x = b.relu(fmt::format("relu{}_{}", block + 1, i), x);
        }
        const Shape& shape = b.shape(x);
        x = b.max_pool(fmt::format("pool{}", block + 1), x, keep_last(square(2, 2), shape[1], shape[2]));
    }
    x = b.flatten("flatten", x);
    x = b.dropout("drop6", b.relu("relu6", b.dense("fc6", x, 4096)), 0.5);
    x = b.dropout("drop7", b.relu("relu7", b.dense("fc7", x, 4096)), 0.5);
    b.loss(b.dense("fc8", x, 1000));
    return b.build();
}

}  // namespace

Network vgg16() { return vgg("vgg16", {2, 2, 3, 3, 3}); }
Network vgg19() { return vgg("vgg19", {2, 2, 4, 4, 4}); }
Network vgg16_226() { return vgg("vgg16-226", {2, 2, 3, 3, 3}, 226); }

}  // namespace rehearse::models
