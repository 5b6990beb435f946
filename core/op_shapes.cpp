// SPDX-License-Identifier: Apache-2.0
// Shapes that an operator's own sizes imply.
#include <fmt/format.h>

#include <numeric>

#include "core/error.hpp"
#include "core/op.hpp"

namespace rehearse {

namespace {

std::int64_t windows(std::int64_t size, std::int64_t before, std::int64_t after, std::int64_t kernel,
                     std::int64_t dilation, std::int64_t stride, std::string_view what) {
    const std::int64_t extent = dilation * (kernel - 1) + 1;
    const std::int64_t room = size + before + after - extent;
    if (size < 1 || kernel < 1 || stride < 1 || dilation < 1 || before < 0 || after < 0) {
        throw InputError(fmt::format("{}: size {}, kernel {}, stride {}, dilation {} must be at least 1, padding 0",
                                     what, size, kernel, stride, dilation));
    }
    if (room < 0) {
        throw InputError(fmt::format("{}: a window of {} does not fit into {} with padding {}+{}", what, extent, size,
                                     before, after));
    }
    return room / stride + 1;
}

Shape image(std::int64_t channels, std::int64_t height, std::int64_t width) { return {channels, height, width}; }

Shape slide(std::int64_t channels, std::int64_t height, std::int64_t width, const Window& w) {
    return {channels, windows(height, w.pad_top, w.pad_bottom, w.kernel_h, w.dilation_h, w.stride_h, "height"),
            windows(width, w.pad_left, w.pad_right, w.kernel_w, w.dilation_w, w.stride_w, "width")};
}

struct Inputs {
    std::vector<Shape> operator()(const Input&) const { return {}; }
    std::vector<Shape> operator()(const SgdUpdate&) const { return {}; }
    std::vector<Shape> operator()(const MatMul& op) const { return {op.m == 1 ? Shape{op.k} : Shape{op.m, op.k}}; }
    std::vector<Shape> operator()(const Activation& op) const { return {op.shape}; }
    std::vector<Shape> operator()(const Dropout& op) const { return {op.shape}; }
    std::vector<Shape> operator()(const Flatten& op) const { return {op.shape}; }
    std::vector<Shape> operator()(const Softmax& op) const { return {{op.classes}}; }
    std::vector<Shape> operator()(const SoftmaxLoss& op) const { return {{op.classes}}; }
    std::vector<Shape> operator()(const Add& op) const {
        return std::vector<Shape>(static_cast<std::size_t>(op.inputs), op.shape);
    }
    std::vector<Shape> operator()(const Concat& op) const {
        std::vector<Shape> shapes;
        for (const std::int64_t channels : op.channels) shapes.push_back(image(channels, op.height, op.width));
        return shapes;
    }
    std::vector<Shape> operator()(const Unknown& op) const { return {{op.input_elements}}; }
    std::vector<Shape> operator()(const BatchNorm& op) const {
        return std::vector<Shape>(op.add ? 2 : 1, image(op.channels, op.height, op.width));
    }
    // Conv2d, Pool2d, Lrn, ChannelPad: one image.
    std::vector<Shape> operator()(const auto& op) const { return {image(op.channels, op.height, op.width)}; }
};

struct Output {
    Shape operator()(const Input& op) const { return op.shape; }
    Shape operator()(const Conv2d& op) const {
        if (op.groups < 1 || op.channels % op.groups != 0 || op.filters % op.groups != 0) {
            throw InputError(fmt::format("{} channels and {} filters cannot be split into {} groups", op.channels,
                                         op.filters, op.groups));
        }
        return slide(op.filters, op.height, op.width, op.window);
    }
    Shape operator()(const Pool2d& op) const { return slide(op.channels, op.height, op.width, op.window); }
    Shape operator()(const MatMul& op) const {
        if (op.activation && op.activation != Nonlinearity::relu && op.activation != Nonlinearity::gelu) {
            throw InputError(fmt::format("matmul is fused with relu or gelu, not with {}", to_string(*op.activation)));
        }
        return op.m == 1 ? Shape{op.n} : Shape{op.m, op.n};
    }
    Shape operator()(const BatchNorm& op) const { return image(op.channels, op.height, op.width); }
    Shape operator()(const Lrn& op) const { return image(op.channels, op.height, op.width); }
    Shape operator()(const Activation& op) const { return op.shape; }
    Shape operator()(const Add& op) const { return op.shape; }
    Shape operator()(const Concat& op) const {
        return image(std::accumulate(op.channels.begin(), op.channels.end(), std::int64_t{0}), op.height, op.width);
    }
    Shape operator()(const ChannelPad& op) const {
        return image(op.before + op.channels + op.after, op.height, op.width);
    }
    Shape operator()(const Dropout& op) const { return op.shape; }
    Shape operator()(const Flatten& op) const { return {elements(op.shape)}; }
    Shape operator()(const Softmax& op) const { return {op.classes}; }
    Shape operator()(const SoftmaxLoss&) const { return {1}; }
    Shape operator()(const SgdUpdate&) const { return {}; }
    Shape operator()(const Unknown& op) const { return op.output; }
};

}  // namespace

std::vector<Shape> input_shapes(const Op& op) { return std::visit(Inputs{}, op); }

Shape output_shape(const Op& op) { return std::visit(Output{}, op); }

Shape output_shape(const Op& op, const std::vector<Shape>& inputs) {
    if (!std::holds_alternative<Unknown>(op)) {
        const std::vector<Shape> expected = input_shapes(op);
        if (inputs.size() != expected.size()) {
            throw InputError(fmt::format("{} takes {} inputs, not {}", kind_of(op), expected.size(), inputs.size()));
        }
        for (std::size_t i = 0; i < inputs.size(); ++i) {
            if (inputs[i] == expected[i]) continue;
            throw InputError(fmt::format("input {} of {} is {}, it was made for {}", i, kind_of(op),
                                         to_string(inputs[i]), to_string(expected[i])));
        }
    }
    return output_shape(op);
}

}  // namespace rehearse
