// SPDX-License-Identifier: Apache-2.0
#include "models/onnx/windows.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "models/onnx/parts.hpp"
#include "models/onnx/resample.hpp"

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
    const std::int64_t height = image[image.size() - 2];
    const auto [top, bottom] = same(height, w.dilation_h * (w.kernel_h - 1) + 1, w.stride_h, upper);
    const auto [left, right] = same(image.back(), w.dilation_w * (w.kernel_w - 1) + 1, w.stride_w, upper);
    w.pad_top = top;
    w.pad_bottom = bottom;
    w.pad_left = left;
    w.pad_right = right;
    if (image.size() == 3) return;
    const auto [front, back] = same(image[1], w.dilation_d * (w.kernel_d - 1) + 1, w.stride_d, upper);
    w.pad_front = front;
    w.pad_back = back;
}

// Of an image, whose sizes are {height, width}, or a volume, whose are {depth, height, width}.
Window made_of(const std::vector<std::int64_t>& kernel, const std::vector<std::int64_t>& strides,
               const std::vector<std::int64_t>& dilations, const std::vector<std::int64_t>& pads) {
    const std::size_t n = kernel.size();
    const std::size_t h = n - 2;
    const std::size_t w = n - 1;
    Window window{kernel[h], kernel[w],   strides[h],  strides[w],   pads[h],
                  pads[w],   pads[n + h], pads[n + w], dilations[h], dilations[w]};
    if (n == 2) return window;
    window.kernel_d = kernel[0];
    window.stride_d = strides[0];
    window.pad_front = pads[0];
    window.pad_back = pads[n];
    window.dilation_d = dilations[0];
    return window;
}

// How many dimensions a window has in the file: of a sequence 1.
std::size_t spatial(const Import& import, const onnx::NodeProto& node) {
    return import.graph.dims(node.input(0)).value_or(Shape{1, 1, 1}).size() - 2;
}

// A sequence is an image of one row, several of them are its rows; several images are the planes of a volume.
std::vector<std::int64_t> lifted(std::vector<std::int64_t> sizes, const Shape& image, std::int64_t row) {
    sizes.insert(sizes.begin(), image.size() - 1 - std::min(sizes.size(), image.size() - 1), row);
    return sizes;
}

// Whether its weights are no tensor of their own. What is computed of one as large (weight_norm) is priced as that.
bool made_weights(const Import& import, const onnx::NodeProto& node) {
    if (!import.graph.constant(node.input(1))) return true;
    const Value& weights = import.graph.value(node.input(1));
    const auto as_large = [&](const std::string& tensor) {  // and no bias of the network that makes them
        const Shape dims = import.graph.dims(tensor).value_or(Shape{});
        return dims.size() > 1 && elements(dims) == elements(weights.dims.value_or(Shape{}));
    };
    const bool own = !import.graph.keeps_values() && std::ranges::any_of(weights.weights, as_large);
    return is_fixed(import, node, 1) || picks_again(import, node.input(1)) || (weights.computed && !own);
}

// Whether a sample has several volumes: {n, channels, depth, height, width}.
bool has_volumes(const Import& import, const onnx::NodeProto& node) {
    const auto dims = import.graph.dims(node.input(0));
    const auto sample = import.graph.sample(node.input(0));
    return !import.graph.constant(node.input(0)) && dims && sample && dims->size() == 5 && sample->size() == 5;
}

int put_image(Import& import, const onnx::NodeProto& node, Op op, int from, std::vector<std::string> tensors = {}) {
    const int layer = import.put(node, std::move(op), {from}, std::move(tensors));
    if (several(import, node)) import.places[node.output(0)].turned = true;
    return layer;
}

Op pool_of(PoolKind kind, const Shape& image, const Window& window, bool count_padding) {
    const std::int64_t depth = image.size() == 4 ? image[1] : 0;
    return Pool{kind, image[0], image[image.size() - 2], image.back(), window, count_padding, depth};
}

std::string pool(Import& import, const onnx::NodeProto& node, PoolKind kind, bool count_padding) {
    const Shape shape = image(import, node);
    const auto kernel = lifted(import.graph.integers(node, "kernel_shape", spatial(import, node), 0), shape, 1);
    put_image(import, node, pool_of(kind, shape, window_of(import, node, shape, kernel), count_padding),
              image_source(import, node, shape));
    return "";
}

std::string global_pool(Import& import, const onnx::NodeProto& node, PoolKind kind) {
    const Shape shape = image(import, node);
    const int from = image_source(import, node, shape);
    const std::vector<std::int64_t> ones(shape.size() - 1, 1), none(2 * ones.size(), 0);
    std::vector<std::int64_t> kernel(shape.begin() + 1, shape.end());
    if (several(import, node)) kernel.front() = 1;
    put_image(import, node, pool_of(kind, shape, made_of(kernel, ones, ones, none), false), from);
    return "";
}

// What Conv and ConvTranspose read: weights {outer, inner, kernel...}, of a transposed one the other way round, and a
// bias.
struct Filters {
    std::int64_t count = 1, groups = 1;
    std::vector<std::int64_t> kernel;
    bool bias = false;
};

Filters filters(const Import& import, const onnx::NodeProto& node, const Shape& image, bool transposed) {
    const Shape weights = node.input_size() < 2 || import.graph.constant(node.input(1))
                              ? import.weights(node, 1, spatial(import, node) + 2)
                              : import.sample(node, node.input(1));
    if (weights.size() != spatial(import, node) + 2 || elements(weights) == 0)
        import.graph.fail(node, "each sample has weights of its own");
    Filters found{weights[0], integer(node, "group", 1), lifted({weights.begin() + 2, weights.end()}, image, 1)};
    // Where each sample has weights of its own, samples are groups of one convolution (Karras et al. 2020).
    const bool groups_of_samples = !import.graph.constant(node.input(1)) &&
                                   import.graph.value(node.input(1)).batch == 0 &&
                                   import.graph.value(node.input(0)).batch == 1;
    if (groups_of_samples && found.groups % import.graph.batch() == 0) found.groups /= import.graph.batch();
    if (transposed) found.count = weights[1] * found.groups;
    const std::int64_t channels = transposed ? weights[0] : weights[1] * found.groups;
    if (found.groups < 1 || image[0] % found.groups != 0 || found.count % found.groups != 0 || channels != image[0])
        import.graph.fail(node, fmt::format("weights of {} do not fit {} channels in {} groups", to_string(weights),
                                            image[0], found.groups));
    found.bias = node.input_size() > 2 && !node.input(2).empty();
    if (found.bias && import.weights(node, 2, 1)[0] != found.count)
        import.graph.fail(node, "its bias has another size");
    return found;
}

}  // namespace

int image_source(Import& import, const onnx::NodeProto& node, const Shape& shape) {
    return several(import, node) ? import.volume_of(node, 0) : import.source(node, 0, shape);
}

Shape image(Import& import, const onnx::NodeProto& node) {
    if (import.graph.constant(node.input(0))) import.bring(node, node.input(0));
    Shape shape = import.sample(node, node.input(0));
    if (several(import, node)) std::swap(shape[0], shape[1]);
    if (has_volumes(import, node)) shape = {shape[0] * shape[1], shape[2], shape[3], shape[4]};  // a pool asks no more
    if (shape.size() == 2 && spatial(import, node) == 1) shape.insert(shape.begin() + 1, 1);
    if (shape.size() != 3 && shape.size() != 4)
        import.graph.fail(
            node, fmt::format("it reads {}, not an image (channels x height x width) or volume", to_string(shape)));
    return shape;
}

Window window_of(const Import& import, const onnx::NodeProto& node, const Shape& image,
                 const std::vector<std::int64_t>& kernel) {
    const std::size_t rank = spatial(import, node);
    const auto strides = lifted(import.graph.integers(node, "strides", rank, 1), image, 1);
    const auto dilations = lifted(import.graph.integers(node, "dilations", rank, 1), image, 1);
    auto pads = import.graph.integers(node, "pads", 2 * rank, 0);
    const std::size_t added = image.size() - 1 - rank;
    pads.insert(pads.begin() + static_cast<std::ptrdiff_t>(rank), added, 0);
    pads.insert(pads.begin(), added, 0);
    for (const std::int64_t size : kernel)
        if (size < 1) import.graph.fail(node, "it has no kernel_shape");
    for (const std::int64_t size : pads)
        if (size < 0) import.graph.fail(node, fmt::format("a padding of {} is impossible", size));
    const std::string automatic = text(node, "auto_pad", "NOTSET");
    if (automatic != "NOTSET" && automatic != "VALID" && automatic != "SAME_UPPER" && automatic != "SAME_LOWER")
        import.graph.fail(node, fmt::format("auto_pad '{}' does not exist", automatic));
    if (integer(node, "ceil_mode", 0) != 0) {  // as much padding behind as the last window needs
        const Shape made = import.graph.dims(node.output(0)).value_or(Shape{});
        for (std::size_t i = 0; i < rank && made.size() == rank + 2; ++i) {
            const std::size_t at = kernel.size() - rank + i;
            const std::int64_t reach = (made[i + 2] - 1) * strides[at] + dilations[at] * (kernel[at] - 1) + 1;
            const std::int64_t size = image[image.size() - rank + i];
            pads[kernel.size() + at] = std::max<std::int64_t>(0, reach - size - pads[at]);
        }
    }
    Window w = made_of(kernel, strides, dilations, pads);
    pad(w, automatic, image);
    return w;
}

bool several(const Import& import, const onnx::NodeProto& node) {
    const auto dims = import.graph.dims(node.input(0));
    const auto sample = import.graph.sample(node.input(0));
    return !import.graph.constant(node.input(0)) && dims && sample && dims->size() == sample->size() &&
           sample->size() >= 2 && sample->size() <= 4;
}

namespace {

// Several volumes a sample, as where heads of attention are pooled (MViT, Fan et al. 2021):
//
//   {n, channels, ...} --+-- slice -- Conv ----------------+-- join {n, filters, ...}
//                        +-- slice -- Conv, shared weights +
std::string conv_of_volumes(Import& import, const onnx::NodeProto& node) {
    const Shape all = import.sample(node, node.input(0)), one(all.begin() + 1, all.end());
    const int from = import.source(node, 0);
    const auto [count, groups, kernel, bias] = filters(import, node, one, false);
    if (made_weights(import, node)) return "its weights are computed, and each sample has several volumes";
    const Conv op{one[0], one[2], one[3], count, window_of(import, node, one, kernel), groups, bias, false, one[1]};
    const std::vector<std::string> tensors = import.tensors(node, 1, bias ? 2 : 1);
    std::vector<int> made;
    std::vector<Shape> shapes;
    for (std::int64_t i = 0; i < all[0]; ++i) {
        Shape piece = all;
        piece[0] = 1;
        const int cut = add_part(import, node, "piece",
                                 Rearrangement{"slice", {all}, piece, {i, 0, 0, 0, 0, 1, 1, 1, 1, 1}}, {from});
        onnx::NodeProto part = node;
        part.set_output(0, fmt::format("{}.{}", node.output(0), i));
        const int layer = import.put(part, op, {seen_as(import, node, cut, one)}, tensors);
        if (import.builder.at(layer).weights_of < 0) {
            import.starts[layer] = {{ node.input(1) }};
            if (bias) import.starts[layer].push_back({node.input(2)});
            add_lengths(import, part, 0);
        }
        Shape row = import.builder.shape(layer);
        row.insert(row.begin(), 1);
        made.push_back(seen_as(import, node, layer, row));
        shapes.push_back(row);
    }
    Shape whole = shapes.front();
    whole[0] = all[0];
    import.put(node, Rearrangement{"join", std::move(shapes), whole, { 0 }}, std::move(made));
    return "";
}

}  // namespace

std::string conv(Import& import, const onnx::NodeProto& node) {
    if (has_volumes(import, node)) return conv_of_volumes(import, node);
    const Shape shape = image(import, node);
    const int from = image_source(import, node, shape);
    auto [count, groups, kernel, bias] = filters(import, node, shape, false);
    const Window window = window_of(import, node, shape, kernel);
    const std::vector<std::string> tensors = import.tensors(node, 1, bias ? 2 : 1);
    if (made_weights(import, node)) {
        Shape made = import.sample(node, node.output(0));
        if (several(import, node)) std::swap(made[0], made[1]);
        if (made.size() + 1 == shape.size()) made.insert(made.begin() + 1, 1);
        const std::string why = unfolded(import, node, {window, groups, bias, false, made}, shape, from);
        if (why.empty()) import.places[node.output(0)].turned = several(import, node);
        return why;
    }
    const bool folded = bias && holds_normalization(import, node);
    if (folded) ++import.folded;
    const bool unfold = folded && import.options.unfold;
    if (unfold) bias = false;
    const std::int64_t depth = shape.size() == 4 ? shape[1] : 0;
    Op op = Conv{shape[0], shape[shape.size() - 2], shape.back(), count, window, groups, bias, false, depth};
    const int layer =
        put_image(import, node, std::move(op), from, unfold ? std::vector<std::string>{tensors[0]} : tensors);
    import.starts[layer] = {{ node.input(1) }};
    if (bias) import.starts[layer].push_back({node.input(2)});
    if (!unfold) {
        add_lengths(import, node, 0);
        return "";
    }
    put_normalization(import, node, layer);
    import.places[node.output(0)].turned = several(import, node);
    return "";
}

std::string conv_transpose(Import& import, const onnx::NodeProto& node) {
    if (text(node, "auto_pad", "NOTSET").starts_with("SAME") || has(node, "output_shape"))
        return "its padding follows from its output's size; export it with pads";
    if (has_volumes(import, node)) return "each sample has several volumes";
    const Shape shape = image(import, node);
    const int from = image_source(import, node, shape);
    const auto [count, groups, kernel, bias] = filters(import, node, shape, true);
    const auto outside = lifted(import.graph.integers(node, "output_padding", spatial(import, node), 0), shape, 0);
    const bool volume = shape.size() == 4;
    ConvTranspose op{
        shape[0], shape[shape.size() - 2], shape.back(), count, window_of(import, node, shape, kernel), groups,
        bias,     volume ? shape[1] : 0};
    op.output_pad_d = volume ? outside[0] : 0;
    op.output_pad_h = outside[outside.size() - 2];
    op.output_pad_w = outside.back();
    if (made_weights(import, node)) {
        const Shape made = output_shape(op);
        const std::string why = unfolded(import, node, {op.window, groups, bias, true, made}, shape, from);
        if (why.empty()) import.places[node.output(0)].turned = several(import, node);
        return why;
    }
    const int layer = put_image(import, node, op, from, import.tensors(node, 1, bias ? 2 : 1));
    import.starts[layer] = {{ node.input(1) }};
    if (bias) import.starts[layer].push_back({node.input(2)});
    add_lengths(import, node, 0);
    return "";
}

std::string max_pool(Import& import, const onnx::NodeProto& node) {
    if (node.output_size() > 1 && import.graph.readers(node.output(1)) > 0) return "its indices are read";
    return pool(import, node, PoolKind::max, false);
}

std::string average_pool(Import& import, const onnx::NodeProto& node) {
    const bool count = integer(node, "count_include_pad", 0) != 0;
    if (count && integer(node, "ceil_mode", 0) != 0)
        ++import.notes["count_include_pad and ceil_mode together: what overhangs an image counts in an average"];
    return pool(import, node, PoolKind::average, count);
}

std::string global_average_pool(Import& import, const onnx::NodeProto& node) {
    return global_pool(import, node, PoolKind::average);
}

std::string global_max_pool(Import& import, const onnx::NodeProto& node) {
    return global_pool(import, node, PoolKind::max);
}

}  // namespace rehearse::models
