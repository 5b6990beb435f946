// SPDX-License-Identifier: Apache-2.0
// The network for high-energy physics of Kurth et al. 2017 (section III.A, table 2): five 3x3 convolutions of 128
// filters, each with a ReLU and a max pool, the last with a global average pool; 224x224x3, two classes.
#include <fmt/format.h>

#include "models/builder.hpp"
#include "models/zoo/zoo.hpp"

namespace rehearse::models {

Network hep_cnn() {
    NetworkBuilder b("hep-cnn", {3, 224, 224});
    int x = NetworkBuilder::input;
    for (int i = 1; i <= 5; ++i) {
        x = b.conv(fmt::format("conv{}", i), x, 128, square(3, 1, 1), true);
        x = b.relu(fmt::format("relu{}", i), x);
        if (i < 5) x = b.max_pool(fmt::format("pool{}", i), x, square(2, 2));
    }
    x = b.flatten("flatten", b.global_average_pool("pool5", x));
    b.loss(b.dense("fc", x, 2));
    return b.build();
}

}  // namespace rehearse::models
