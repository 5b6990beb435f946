// SPDX-License-Identifier: Apache-2.0
#include "models/zoo/image_blocks.hpp"

#include <algorithm>

namespace rehearse::models {

int function_of(NetworkBuilder& b, const std::string& name, int from, const std::string& function) {
    const Shape shape = b.shape(from);
    if (function.empty()) return from;
    if (function == "relu") return b.layer(name, Activation{Nonlinearity::relu, shape}, {from});
    if (function == "sigmoid") return b.layer(name, Activation{Nonlinearity::sigmoid, shape}, {from});
    if (function == "gelu") return b.layer(name, Activation{Nonlinearity::gelu, shape}, {from});
    Elementwise op{function, shape, {shape}};
    if (function == "relu6") {
        op.function = "clip";
        op.numbers = {0, 6};
    }
    if (function == "hardsigmoid") op.numbers = hardsigmoid_numbers;
    return b.layer(name, op, {from});
}

int conv_norm(NetworkBuilder& b, const std::string& name, int from, std::int64_t filters, std::int64_t kernel,
              std::int64_t stride, std::int64_t groups, const ConvStyle& style) {
    int x = b.conv(name + ".0", from, filters, square(kernel, stride, kernel / 2), false, groups);
    x = b.batch_norm(name + ".1", x);
    auto& norm = std::get<BatchNorm>(b.at(x).op);
    norm.epsilon = style.epsilon;
    norm.momentum = style.momentum;
    return function_of(b, name + ".2", x, style.function);
}

int squeeze_excite(NetworkBuilder& b, const std::string& name, int from, std::int64_t squeeze,
                   const std::string& function, const std::string& gate) {
    const Shape shape = b.shape(from);
    int x = b.global_average_pool(name + ".avgpool", from);
    x = function_of(b, name + ".activation", b.conv(name + ".fc1", x, squeeze, square(1), true), function);
    x = function_of(b, name + ".scale_activation", b.conv(name + ".fc2", x, shape.front(), square(1), true), gate);
    return b.layer(name + ".mul", Elementwise{"mul", shape, {shape, b.shape(x)}}, {from, x});
}

std::int64_t make_divisible(double value, std::int64_t divisor) {
    const auto rounded = static_cast<std::int64_t>(value + static_cast<double>(divisor) / 2) / divisor * divisor;
    const std::int64_t made = std::max(divisor, rounded);
    return static_cast<double>(made) < 0.9 * value ? made + divisor : made;
}

void classify(NetworkBuilder& b, int from, const std::string& name, double dropped, std::int64_t classes) {
    int x = b.flatten("flatten", b.global_average_pool("avgpool", from));
    if (dropped > 0) x = b.dropout(name + ".0", x, 1 - dropped);
    b.loss(b.dense(dropped > 0 ? name + ".1" : name, x, classes));
}

}  // namespace rehearse::models
