// SPDX-License-Identifier: Apache-2.0
// Inception v3 (Szegedy et al. 2016, table 1) without its auxiliary head; channels as in TensorFlow's tf_cnn_benchmarks
// and torchvision: 23.8 M parameters, 5.7 GMAC. Batch normalization after every convolution.
#include <fmt/format.h>

#include "models/builder.hpp"
#include "models/zoo/zoo_replayed.hpp"

namespace rehearse::models {
namespace {

/// A window of `h` x `w` that keeps the image's size.
Window wide(std::int64_t h, std::int64_t w) {
    Window window;
    window.kernel_h = h;
    window.kernel_w = w;
    window.pad_top = window.pad_bottom = (h - 1) / 2;
    window.pad_left = window.pad_right = (w - 1) / 2;
    return window;
}

class Inception {
public:
    explicit Inception(NetworkBuilder& builder) : b_(builder) {}

    int conv(int from, std::int64_t filters, Window window) {
        const std::string name = fmt::format("conv{}", ++count_);
        const int x = b_.batch_norm(name + ".bn", b_.conv(name, from, filters, window));
        return b_.relu(name + ".relu", x);
    }
    int one(int from, std::int64_t filters) { return conv(from, filters, square(1)); }
    int pooled(int from, std::int64_t filters) {
        return one(b_.average_pool(fmt::format("pool{}", ++count_), from, square(3, 1, 1)), filters);
    }
    int halved(int from) { return b_.max_pool(fmt::format("pool{}", ++count_), from, square(3, 2)); }
    int join(std::vector<int> from) { return b_.concat(fmt::format("concat{}", ++count_), std::move(from)); }

    // 35x35: 1x1 | 5x5 | two 3x3 | pool
    int a(int x, std::int64_t projection) {
        const int five = conv(one(x, 48), 64, square(5, 1, 2));
        const int twice = conv(conv(one(x, 64), 96, square(3, 1, 1)), 96, square(3, 1, 1));
        return join({one(x, 64), five, twice, pooled(x, projection)});
    }
    // 35x35 to 17x17
    int b(int x) {
        const int twice = conv(conv(one(x, 64), 96, square(3, 1, 1)), 96, square(3, 2));
        return join({conv(x, 384, square(3, 2)), twice, halved(x)});
    }
    // 17x17: each 7x7 as 1x7 and 7x1
    int c(int x, std::int64_t width) {
        const int once = conv(conv(one(x, width), width, wide(1, 7)), 192, wide(7, 1));
        int twice = conv(conv(one(x, width), width, wide(7, 1)), width, wide(1, 7));
        twice = conv(conv(twice, width, wide(7, 1)), 192, wide(1, 7));
        return join({one(x, 192), once, twice, pooled(x, 192)});
    }
    // 17x17 to 8x8
    int d(int x) {
        const int three = conv(one(x, 192), 320, square(3, 2));
        const int seven = conv(conv(conv(one(x, 192), 192, wide(1, 7)), 192, wide(7, 1)), 192, square(3, 2));
        return join({three, seven, halved(x)});
    }
    // 8x8: 3x3 as 1x3 beside 3x1
    int e(int x) {
        const int once = one(x, 384);
        const int twice = conv(one(x, 448), 384, square(3, 1, 1));
        return join({one(x, 320), conv(once, 384, wide(1, 3)), conv(once, 384, wide(3, 1)),
                     conv(twice, 384, wide(1, 3)), conv(twice, 384, wide(3, 1)), pooled(x, 192)});
    }

private:
    NetworkBuilder& b_;
    int count_ = 0;
};

Network inception_v3_of(const char* name, std::int64_t side) {
    NetworkBuilder b(name, {3, side, side});
    Inception net(b);
    int x = net.conv(NetworkBuilder::input, 32, square(3, 2));
    x = net.conv(net.conv(x, 32, square(3)), 64, square(3, 1, 1));
    x = net.conv(net.one(net.halved(x), 80), 192, square(3));
    x = net.halved(x);
    for (const int projection : {32, 64, 64}) x = net.a(x, projection);
    x = net.b(x);
    for (const int width : {128, 160, 160, 192}) x = net.c(x, width);
    x = net.e(net.e(net.d(x)));
    x = b.dropout("dropout", b.flatten("flatten", b.global_average_pool("pool", x)), 0.5);
    b.loss(b.dense("fc", x, 1000));
    return b.build();
}

}  // namespace

Network inception_v3() { return inception_v3_of("inception-v3", 299); }
Network inception_v3_224() { return inception_v3_of("inception-v3-224", 224); }

}  // namespace rehearse::models
