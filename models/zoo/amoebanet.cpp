// SPDX-License-Identifier: Apache-2.0
// AmoebaNet-D (Real et al. 2018) as the pipelines of GPipe and torchgpipe train it (Huang et al. 2019, Kim et al.
// 2020): three cells of a stem, then normal cells with two that halve the image between them; ReLU before each
// convolution, batch normalization after it. Its numbers of weights are those of torchgpipe's table (81.5 M of 18 x
// 208).
#include <array>
#include <vector>

#include <fmt/format.h>

#include "models/builder.hpp"
#include "models/zoo/zoo_replayed.hpp"

namespace rehearse::models {
namespace {

enum class Kind { conv_1x1, conv_3x3, conv_1x7_7x1, max_pool_2x2, max_pool_3x3, average_pool_3x3, none };

/// What a cell does to one of its states: 0 and 1 are what comes in, each pair of operations adds one.
struct Operation {
    std::size_t state = 0;
    Kind kind = Kind::none;
};
using enum Kind;
constexpr std::array normal{Operation{1, conv_1x1},     Operation{1, max_pool_3x3}, Operation{1, none},
                            Operation{0, conv_1x7_7x1}, Operation{0, conv_1x1},     Operation{0, conv_1x7_7x1},
                            Operation{2, max_pool_3x3}, Operation{2, none},         Operation{1, average_pool_3x3},
                            Operation{5, conv_1x1}};
constexpr std::array<std::size_t, 4> normal_out{0, 3, 4, 6};
constexpr std::array reduction{Operation{0, max_pool_2x2}, Operation{0, max_pool_3x3}, Operation{2, none},
                               Operation{1, conv_3x3},     Operation{2, conv_1x7_7x1}, Operation{2, max_pool_3x3},
                               Operation{3, none},         Operation{1, max_pool_2x2}, Operation{2, average_pool_3x3},
                               Operation{3, conv_1x1}};
constexpr std::array<std::size_t, 3> reduction_out{4, 5, 6};

Window rectangle(std::int64_t h, std::int64_t w, std::int64_t stride_h, std::int64_t stride_w) {
    Window window;
    window.kernel_h = h;
    window.kernel_w = w;
    window.stride_h = stride_h;
    window.stride_w = stride_w;
    window.pad_top = window.pad_bottom = (h - 1) / 2;
    window.pad_left = window.pad_right = (w - 1) / 2;
    return window;
}

class Amoeba {
public:
    Amoeba(NetworkBuilder& builder, std::int64_t channels) : b_(builder), channels_(channels) {
        before_ = last_ = conv(NetworkBuilder::input, channels, square(3, 2, 1));
    }

    void cell(bool reduces) {
        if (reduces) channels_ *= 2;
        std::vector<int> states{fitted(before_), conv(last_, channels_, square(1))};
        const auto add = [&](const Operation& one, const Operation& two) {
            const int a = apply(one, states, reduces), b = apply(two, states, reduces);
            states.push_back(b_.add(fmt::format("add{}", ++count_), a, b));
        };
        const auto& operations = reduces ? reduction : normal;
        for (std::size_t i = 0; i < operations.size(); i += 2) add(operations[i], operations[i + 1]);
        std::vector<int> parts;
        if (reduces) {
            for (const std::size_t state : reduction_out) parts.push_back(states[state]);
        } else {
            for (const std::size_t state : normal_out) parts.push_back(states[state]);
        }
        before_ = last_;
        last_ = b_.concat(fmt::format("cell{}", ++count_), parts);
        reduced_ = reduces;
    }
    int last() const { return last_; }

private:
    int conv(int from, std::int64_t filters, Window window) {
        const std::string name = fmt::format("conv{}", ++count_);
        const int x = from == NetworkBuilder::input ? from : b_.relu(name + ".relu", from);
        return b_.batch_norm(name + ".bn", b_.conv(name, x, filters, window));
    }
    // Half the image: two 1x1 convolutions of half the channels, the second a pixel further on.
    int halved(int from) {
        const std::string name = fmt::format("half{}", ++count_);
        const int x = b_.relu(name + ".relu", from);
        const int even = b_.conv(name + ".even", x, channels_ / 2, square(1, 2));
        const int odd = b_.conv(name + ".odd", x, channels_ / 2, square(1, 2));
        return b_.batch_norm(name + ".bn", b_.concat(name + ".concat", {even, odd}));
    }
    // The cell before last, as large and as deep as this one.
    int fitted(int from) {
        if (reduced_) return halved(from);
        return b_.shape(from)[0] == channels_ ? from : conv(from, channels_, square(1));
    }
    int apply(const Operation& operation, const std::vector<int>& states, bool reduces) {
        const int x = states[operation.state];
        const std::int64_t stride = reduces && operation.state < 2 ? 2 : 1;
        const std::int64_t narrow = channels_ / 4;
        const auto pool = [&] { return fmt::format("pool{}", ++count_); };
        switch (operation.kind) {
            case conv_1x1:
                return conv(x, channels_, square(1, stride));
            case conv_3x3:
                return conv(conv(conv(x, narrow, square(1)), narrow, square(3, stride, 1)), channels_, square(1));
            case conv_1x7_7x1: {
                const int wide = conv(conv(x, narrow, square(1)), narrow, rectangle(1, 7, 1, stride));
                return conv(conv(wide, narrow, rectangle(7, 1, stride, 1)), channels_, square(1));
            }
            case max_pool_2x2:
                return b_.max_pool(pool(), x, square(2, stride));
            case max_pool_3x3:
                return b_.max_pool(pool(), x, square(3, stride, 1));
            case average_pool_3x3:
                return b_.average_pool(pool(), x, square(3, stride, 1));
            case none:
                return stride == 1 ? x : halved(x);
        }
        return x;
    }

    NetworkBuilder& b_;
    std::int64_t channels_;
    int before_ = 0, last_ = 0, count_ = 0;
    bool reduced_ = false;
};

}  // namespace

Network amoebanet_d(int normal_cells, std::int64_t filters) {
    NetworkBuilder b(fmt::format("amoebanet-d-{}x{}", normal_cells, filters), {3, 224, 224});
    Amoeba amoeba(b, filters / 4);
    amoeba.cell(true);
    amoeba.cell(true);
    for (int part = 0; part < 3; ++part) {
        if (part > 0) amoeba.cell(true);
        for (int i = 0; i < normal_cells / 3; ++i) amoeba.cell(false);
    }
    const int x = b.global_average_pool("pool", amoeba.last());
    b.loss(b.dense("scores", b.flatten("flatten", x), 1000));
    return b.build();
}

Network amoebanet_d_18x256() { return amoebanet_d(18, 256); }

}  // namespace rehearse::models
