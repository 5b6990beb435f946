// SPDX-License-Identifier: Apache-2.0
// Networks of our own for 3x32x32 images, small enough to train on a desk: what predictions are held to
// (scripts/accuracy.sh). One is bound by convolutions with a heavy dense end, the other one is all weights.
#include <array>

#include <fmt/format.h>

#include "models/builder.hpp"
#include "models/zoo/zoo.hpp"

namespace rehearse::models {

// The first three blocks of VGG's configuration B (Simonyan and Zisserman 2015) and two dense layers.
Network vgg8() {
    constexpr std::array<int, 3> filters{64, 128, 256};
    NetworkBuilder b("vgg8", {3, 32, 32});
    int x = NetworkBuilder::input;
    for (std::size_t block = 0; block < filters.size(); ++block) {
        for (int i = 1; i <= 2; ++i) {
            x = b.conv(fmt::format("conv{}_{}", block + 1, i), x, filters[block], square(3, 1, 1), true);
            x = b.relu(fmt::format("relu{}_{}", block + 1, i), x);
        }
        x = b.max_pool(fmt::format("pool{}", block + 1), x, square(2, 2));
    }
    x = b.relu("relu4", b.dense("fc4", b.flatten("flatten", x), 512));
    b.loss(b.dense("fc5", x, 10));
    return b.build();
}

Network mlp() {
    NetworkBuilder b("mlp", {3, 32, 32});
    int x = b.flatten("flatten", NetworkBuilder::input);
    x = b.relu("relu1", b.dense("fc1", x, 1024));
    x = b.relu("relu2", b.dense("fc2", x, 1024));
    b.loss(b.dense("fc3", x, 10));
    return b.build();
}

}  // namespace rehearse::models
