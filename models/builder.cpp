// SPDX-License-Identifier: Apache-2.0
#include "models/builder.hpp"

#include <utility>

#include "core/error.hpp"

namespace rehearse::models {
namespace {

struct Image {
    std::int64_t channels, depth, height, width;  // a depth of 0: an image, not a volume
};

Image image(const Shape& shape) {
    require(shape.size() == 3 || shape.size() == 4, "an image has channels, height and width, a volume a depth too");
    return {shape[0], shape.size() == 4 ? shape[1] : 0, shape[shape.size() - 2], shape.back()};
}

// How far the last window reaches beyond the padded image when no window that starts inside it is dropped.
std::int64_t overhang(std::int64_t size, std::int64_t kernel, std::int64_t stride) {
    return (stride - (size - kernel) % stride) % stride;
}

}  // namespace

Window square(std::int64_t kernel, std::int64_t stride, std::int64_t pad) {
    return {.kernel_h = kernel,
            .kernel_w = kernel,
            .stride_h = stride,
            .stride_w = stride,
            .pad_top = pad,
            .pad_left = pad,
            .pad_bottom = pad,
            .pad_right = pad};
}

Window cube(std::int64_t kernel, std::int64_t stride, std::int64_t pad) {
    Window window = square(kernel, stride, pad);
    window.kernel_d = kernel;
    window.stride_d = stride;
    window.pad_front = window.pad_back = pad;
    return window;
}

Window keep_last(Window window, std::int64_t height, std::int64_t width, std::int64_t depth) {
    if (depth > 0) {
        const std::int64_t span_d = window.dilation_d * (window.kernel_d - 1) + 1;
        window.pad_back += overhang(depth + window.pad_front + window.pad_back, span_d, window.stride_d);
    }
    const std::int64_t span_h = window.dilation_h * (window.kernel_h - 1) + 1;
    const std::int64_t span_w = window.dilation_w * (window.kernel_w - 1) + 1;
    window.pad_bottom += overhang(height + window.pad_top + window.pad_bottom, span_h, window.stride_h);
    window.pad_right += overhang(width + window.pad_left + window.pad_right, span_w, window.stride_w);
    return window;
}

NetworkBuilder::NetworkBuilder(std::string name, Shape shape)
    : NetworkBuilder(std::move(name), Input{std::move(shape)}) {}

NetworkBuilder::NetworkBuilder(std::string name, Input input_op) {
    network_.name = std::move(name);
    network_.layers.push_back({"input", input_op, {}, input_op.shape, -1, block_called(network_, "input")});
}

int NetworkBuilder::layer(std::string name, Op op, std::vector<int> inputs) {
    std::vector<Shape> shapes;
    for (const int from : inputs) shapes.push_back(shape(from));
    Shape output = output_shape(op, shapes);
    const int block = block_called(network_, name);
    network_.layers.push_back({std::move(name), std::move(op), std::move(inputs), std::move(output), -1, block});
    return static_cast<int>(network_.layers.size()) - 1;
}

int NetworkBuilder::conv(std::string name, int from, std::int64_t filters, Window window, bool bias,
                         std::int64_t groups) {
    const auto [c, d, h, w] = image(shape(from));
    return layer(std::move(name), Conv{c, h, w, filters, window, groups, bias, false, d}, {from});
}

int NetworkBuilder::conv_transpose(std::string name, int from, std::int64_t filters, Window window, bool bias) {
    const auto [c, d, h, w] = image(shape(from));
    return layer(std::move(name), ConvTranspose{c, h, w, filters, window, 1, bias, d}, {from});
}

int NetworkBuilder::batch_norm(std::string name, int from) {
    const auto [c, d, h, w] = image(shape(from));
    add_state(2 * c);  // running mean and variance
    return layer(std::move(name), BatchNorm{.channels = c, .height = h, .width = w, .depth = d}, {from});
}

int NetworkBuilder::relu(std::string name, int from) {
    return layer(std::move(name), Activation{Nonlinearity::relu, shape(from)}, {from});
}

int NetworkBuilder::max_pool(std::string name, int from, Window window) {
    const auto [c, d, h, w] = image(shape(from));
    return layer(std::move(name), Pool{PoolKind::max, c, h, w, window, false, d}, {from});
}

int NetworkBuilder::average_pool(std::string name, int from, Window window) {
    const auto [c, d, h, w] = image(shape(from));
    return layer(std::move(name), Pool{PoolKind::average, c, h, w, window, false, d}, {from});
}

int NetworkBuilder::global_average_pool(std::string name, int from) {
    const auto [c, d, h, w] = image(shape(from));
    Window all{.kernel_h = h, .kernel_w = w};
    if (d > 0) all.kernel_d = d;
    return average_pool(std::move(name), from, all);
}

int NetworkBuilder::lrn(std::string name, int from, std::int64_t size, double alpha, double beta) {
    const auto [c, d, h, w] = image(shape(from));
    require(d == 0, "local response normalization is of images");
    return layer(std::move(name), Lrn{c, h, w, size, alpha, beta}, {from});
}

int NetworkBuilder::dropout(std::string name, int from, double keep) {
    return layer(std::move(name), Dropout{shape(from), keep}, {from});
}

int NetworkBuilder::flatten(std::string name, int from) { return layer(std::move(name), Flatten{shape(from)}, {from}); }

int NetworkBuilder::dense(std::string name, int from, std::int64_t features) {
    require(shape(from).size() == 1, "a dense layer reads a flat input");
    return layer(std::move(name), MatMul{.m = 1, .n = features, .k = shape(from)[0], .bias = true}, {from});
}

int NetworkBuilder::tied_dense(std::string name, int from, int embedding) {
    const auto& table = std::get<Embedding>(network_.layers.at(static_cast<std::size_t>(embedding)).op);
    const MatMul op{.m = shape(from).front(), .n = table.vocabulary, .k = table.width, .bias = false, .tied = true};
    const int index = layer(std::move(name), op, {from});
    network_.layers.back().weights_of = embedding;
    return index;
}

int NetworkBuilder::add(std::string name, int a, int b) { return layer(std::move(name), Add{shape(a), 2}, {a, b}); }

int NetworkBuilder::concat(std::string name, std::vector<int> from) {
    Concat op;
    for (const int input_layer : from) {
        const auto [c, d, h, w] = image(shape(input_layer));
        op.channels.push_back(c);
        op.depth = d;
        op.height = h;
        op.width = w;
    }
    return layer(std::move(name), std::move(op), std::move(from));
}

int NetworkBuilder::channel_pad(std::string name, int from, std::int64_t before, std::int64_t after) {
    const auto [c, d, h, w] = image(shape(from));
    require(d == 0, "channels are padded in images");
    return layer(std::move(name), ChannelPad{c, h, w, before, after}, {from});
}

int NetworkBuilder::resize(std::string name, int from, std::int64_t height, std::int64_t width) {
    const auto [c, d, h, w] = image(shape(from));
    require(d == 0, "an image becomes an image");
    return layer(std::move(name), Resize{Interpolation::linear, c, h, w, height, width}, {from});
}

int NetworkBuilder::loss(int from) { return layer("loss", SoftmaxLoss{elements(shape(from))}, {from}); }

int NetworkBuilder::pixel_loss(int from, std::vector<double> class_weights) {
    const Shape& scores = shape(from);
    return layer("loss", SoftmaxLoss{scores[0], Shape(scores.begin() + 1, scores.end()), std::move(class_weights)},
                 {from});
}

namespace {

bool give_bias(Op& op) {
    if (auto* conv = std::get_if<Conv>(&op)) return !std::exchange(conv->bias, true);
    if (auto* conv = std::get_if<ConvTranspose>(&op)) return !std::exchange(conv->bias, true);
    if (auto* dense = std::get_if<MatMul>(&op)) return !dense->tied && !std::exchange(dense->bias, true);
    return false;
}

}  // namespace

bool NetworkBuilder::add_bias(int layer) {
    if (!give_bias(network_.layers.at(static_cast<std::size_t>(layer)).op)) return false;
    for (Layer& each : network_.layers) {  // those that are called with the same weights
        const auto* shared = std::get_if<Shared>(&each.op);
        if (shared == nullptr || each.weights_of != layer) continue;
        Op same = shared->op->op;
        give_bias(same);
        each.op = Shared{std::make_shared<const SharedOp>(SharedOp{std::move(same)})};
    }
    return true;
}

Network NetworkBuilder::build() {
    check(network_);
    return std::move(network_);
}

}  // namespace rehearse::models
