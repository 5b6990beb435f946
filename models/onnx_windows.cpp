// SPDX-License-Identifier: Apache-2.0
#include "models/onnx_windows.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace rehearse::models {
namespace {

struct Padding {
    std::int64_t before, after;
};

// ONNX's SAME: as many windows as strides fit, the odd pixel of padding after (upper) or before (lower).
Padding same(std::int64_t size, std::int64_t span, std::int64_t stride, bool upper) {
    const std::int64_t windows = (size + stride - 1) / stride;
    const std::int64_t total = std::max<std::int64_t>(0, (windows - 1) * stride + span - size);
    return upper ? Padding{total / 2, total - total / 2} : Padding{total - total / 2, total / 2};
}

void pad(Window& w, const std::string& automatic, const Shape& image) {
    if (!automatic.starts_with("SAME")) return;  // VALID: none
    const bool upper = automatic == "SAME_UPPER";
    const auto [top, bottom] = same(image[1], w.dilation_h * (w.kernel_h - 1) + 1, w.stride_h, upper);
    const auto [left, right] = same(image[2], w.dilation_w * (w.kernel_w - 1) + 1, w.stride_w, upper);
    w.pad_top = top;
    w.pad_bottom = bottom;
    w.pad_left = left;
    w.pad_right = right;
}

Window pool_window(const Import& import, const onnx::NodeProto& node, const Shape& shape) {
    const auto kernel = import.graph.integers(node, "kernel_shape", 2, 0);
    return window_of(import, node, shape, kernel[0], kernel[1]);
}

std::string global_pool(Import& import, const onnx::NodeProto& node, PoolKind kind) {
    const int from = import.source(node, 0);
    const Shape shape = image(import, node, from);
    const Window all{.kernel_h = shape[1], .kernel_w = shape[2]};
    import.put(node, Pool2d{kind, shape[0], shape[1], shape[2], all}, {from});
    return "";
}

}  // namespace

Shape image(const Import& import, const onnx::NodeProto& node, int layer) {
    const Shape& shape = import.builder.shape(layer);
    if (shape.size() != 3)
        import.graph.fail(node, fmt::format("it reads {}, not an image (channels x height x width)", to_string(shape)));
    return shape;
}

Window window_of(const Import& import, const onnx::NodeProto& node, const Shape& image, std::int64_t kernel_h,
                 std::int64_t kernel_w) {
    const auto strides = import.graph.integers(node, "strides", 2, 1);
    const auto dilations = import.graph.integers(node, "dilations", 2, 1);
    const auto pads = import.graph.integers(node, "pads", 4, 0);
    Window w{kernel_h, kernel_w, strides[0], strides[1],   pads[0],
             pads[1],  pads[2],  pads[3],    dilations[0], dilations[1]};
    if (kernel_h < 1 || kernel_w < 1) import.graph.fail(node, "it has no kernel_shape");
    for (const std::int64_t size : pads)
        if (size < 0) import.graph.fail(node, fmt::format("a padding of {} is impossible", size));
    const std::string automatic = text(node, "auto_pad", "NOTSET");
    if (automatic != "NOTSET" && automatic != "VALID" && automatic != "SAME_UPPER" && automatic != "SAME_LOWER")
        import.graph.fail(node, fmt::format("auto_pad '{}' does not exist", automatic));
    pad(w, automatic, image);
    return integer(node, "ceil_mode", 0) == 0 ? w : keep_last(w, image[1], image[2]);
}

std::string conv(Import& import, const onnx::NodeProto& node) {
    const int from = import.source(node, 0);
    if (import.builder.shape(from).size() != 3) return "it is not a convolution of images";
    const Shape shape = image(import, node, from);
    const Shape weights = import.weights(node, 1, 4);
    const std::int64_t groups = integer(node, "group", 1);
    if (groups < 1 || shape[0] % groups != 0 || weights[0] % groups != 0 || weights[1] != shape[0] / groups)
        import.graph.fail(node, fmt::format("weights of {} do not fit {} channels in {} groups", to_string(weights),
                                            shape[0], groups));
    const Window window = window_of(import, node, shape, weights[2], weights[3]);
    const bool bias = node.input_size() > 2 && !node.input(2).empty();
    if (bias && import.weights(node, 2, 1)[0] != weights[0]) import.graph.fail(node, "its bias has another size");
    import.put(node, Conv2d{shape[0], shape[1], shape[2], weights[0], window, groups, bias}, {from});
    return "";
}

std::string max_pool(Import& import, const onnx::NodeProto& node) {
    if (node.output_size() > 1 && import.graph.readers(node.output(1)) > 0) return "its indices are read";
    const int from = import.source(node, 0);
    if (import.builder.shape(from).size() != 3) return "it is not a pool of images";
    const Shape shape = image(import, node, from);
    const Window window = pool_window(import, node, shape);
    import.put(node, Pool2d{PoolKind::max, shape[0], shape[1], shape[2], window}, {from});
    return "";
}

std::string average_pool(Import& import, const onnx::NodeProto& node) {
    const int from = import.source(node, 0);
    if (import.builder.shape(from).size() != 3) return "it is not a pool of images";
    const Shape shape = image(import, node, from);
    const bool count = integer(node, "count_include_pad", 0) != 0;
    if (count && integer(node, "ceil_mode", 0) != 0) return "count_include_pad and ceil_mode together are ambiguous";
    const Window window = pool_window(import, node, shape);
    import.put(node, Pool2d{PoolKind::average, shape[0], shape[1], shape[2], window, count}, {from});
    return "";
}

std::string global_average_pool(Import& import, const onnx::NodeProto& node) {
    return global_pool(import, node, PoolKind::average);
}

std::string global_max_pool(Import& import, const onnx::NodeProto& node) {
    return global_pool(import, node, PoolKind::max);
}

}  // namespace rehearse::models
