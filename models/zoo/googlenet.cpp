// SPDX-License-Identifier: Apache-2.0
// GoogLeNet (Szegedy et al. 2015, table 1) without its auxiliary heads: biases and local response normalization, no
// batch normalization. Pools keep their last window, so that images shrink 112, 56, 28, 14, 7 as in the table; files
// converted from Caffe often lost that (27, 13, 6) and have the same weights.
#include "models/builder.hpp"
#include "models/zoo/zoo.hpp"
#include "models/zoo/zoo_replayed.hpp"

namespace rehearse::models {
namespace {

// The columns of table 1.
struct Inception {
    const char* name;
    int one, reduce3, three, reduce5, five, pool;
};

int conv_relu(NetworkBuilder& b, const std::string& name, int from, int filters, Window window) {
    return b.relu(name + "/relu", b.conv(name, from, filters, window, true));
}

//        +-> 1x1 --------------+
//   from +-> 1x1 -> 3x3 -------+-> concat
//        +-> 1x1 -> 5x5 -------+
//        +-> 3x3 pool -> 1x1 --+
int inception(NetworkBuilder& b, const Inception& m, int from) {
    const std::string name = m.name;
    const int one = conv_relu(b, name + "/1x1", from, m.one, square(1));
    const int reduce3 = conv_relu(b, name + "/3x3_reduce", from, m.reduce3, square(1));
    const int three = conv_relu(b, name + "/3x3", reduce3, m.three, square(3, 1, 1));
    const int reduce5 = conv_relu(b, name + "/5x5_reduce", from, m.reduce5, square(1));
    const int five = conv_relu(b, name + "/5x5", reduce5, m.five, square(5, 1, 2));
    const int pool = b.max_pool(name + "/pool", from, square(3, 1, 1));
    const int projection = conv_relu(b, name + "/pool_proj", pool, m.pool, square(1));
    return b.concat(name + "/concat", {one, three, five, projection});
}

int halve(NetworkBuilder& b, const std::string& name, int from) {
    const Shape& shape = b.shape(from);
    return b.max_pool(name, from, keep_last(square(3, 2), shape[1], shape[2]));
}

Network googlenet_of(const std::string& name, std::int64_t side) {
    NetworkBuilder b(name, {3, side, side});
    int x = conv_relu(b, "conv1", NetworkBuilder::input, 64, square(7, 2, 3));
    x = b.lrn("norm1", halve(b, "pool1", x));
    x = conv_relu(b, "conv2_reduce", x, 64, square(1));
    x = conv_relu(b, "conv2", x, 192, square(3, 1, 1));
    x = halve(b, "pool2", b.lrn("norm2", x));
    for (const Inception& m : {Inception{"3a", 64, 96, 128, 16, 32, 32}, Inception{"3b", 128, 128, 192, 32, 96, 64}})
        x = inception(b, m, x);
    x = halve(b, "pool3", x);
    for (const Inception& m : {Inception{"4a", 192, 96, 208, 16, 48, 64}, Inception{"4b", 160, 112, 224, 24, 64, 64},
                               Inception{"4c", 128, 128, 256, 24, 64, 64}, Inception{"4d", 112, 144, 288, 32, 64, 64},
                               Inception{"4e", 256, 160, 320, 32, 128, 128}})
        x = inception(b, m, x);
    x = halve(b, "pool4", x);
    for (const Inception& m :
         {Inception{"5a", 256, 160, 320, 32, 128, 128}, Inception{"5b", 384, 192, 384, 48, 128, 128}})
        x = inception(b, m, x);
    x = b.dropout("dropout", b.global_average_pool("pool5", x), 0.6);
    b.loss(b.dense("classifier", b.flatten("flatten", x), 1000));
    return b.build();
}

}  // namespace

Network googlenet() { return googlenet_of("googlenet", 224); }
Network googlenet_256() { return googlenet_of("googlenet-256", 256); }

}  // namespace rehearse::models
