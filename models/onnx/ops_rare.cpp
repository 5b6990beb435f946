// SPDX-License-Identifier: Apache-2.0
// Operators of ONNX's standard domain that few networks have: each in a general form with exact operations and bytes.
// "compound" is a function whose elements take so many operations, counted here: a multiply-add is 2, a root or a power
// of a series 8, as everywhere.
#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <utility>

#include <fmt/format.h>

#include "models/onnx/infer.hpp"
#include "models/onnx/windows.hpp"

namespace rehearse::models {
namespace {

double count(const Shape& shape) { return static_cast<double>(elements(shape)); }

// One layer that reads all activations among the node's inputs.
std::string compound(Import& import, const onnx::NodeProto& node, double each, int output = 0) {
    Operands from = import.operands(node);
    Elementwise op{"compound", import.sample(node, node.output(output)), from.inputs, from.weights, from.constants};
    op.numbers = {each};
    if (from.layers.empty()) return "it reads no activation";
    import.put(node, std::move(op), std::move(from.layers), std::move(from.tensors), output);
    return "";
}

// Other names for operands in their places: "x, w" of "x, scale, zero, w, ...".
onnx::NodeProto with_inputs(const onnx::NodeProto& node, const char* type, std::initializer_list<int> kept) {
    onnx::NodeProto made = node;
    made.set_op_type(type);
    made.clear_input();
    for (const int i : kept) {
        if (i < node.input_size() && !node.input(i).empty()) made.add_input(node.input(i));
    }
    return made;
}

// (sum |x|^p)^(1/p) of so many numbers.
double norm_of(double numbers, std::int64_t p) {
    const double power = p == 1 || p == 2 ? 1 : 8, root = p == 1 ? 0 : p == 2 ? 1 : 8;
    return numbers * (power + 1) + root;
}

// 5 n log2 n, as the field counts a fast Fourier transform (Cooley and Tukey 1965; fftw.org/speed).
double transform(double n) { return n > 1 ? 5 * n * std::log2(n) : 0; }

std::string lp_pool(Import& import, const onnx::NodeProto& node) {
    const Shape shape = import.sample(node, node.input(0));
    const std::int64_t p = integer(node, "p", 2);
    double taps = 1;
    if (node.op_type() == "GlobalLpPool") {
        taps = count(shape) / static_cast<double>(std::max<std::int64_t>(1, shape.front()));
    } else {
        for (const std::int64_t size : list(node, "kernel_shape").value_or(std::vector<std::int64_t>{}))
            taps *= static_cast<double>(std::max<std::int64_t>(1, size));
    }
    return compound(import, node, norm_of(taps, p));
}

// Neighbours of a point, a multiply-add for each: 2 of a line, 4 of an image, 8 of a volume, or none of the nearest.
double interpolated(std::string_view mode, std::size_t dims) {
    if (mode == "nearest") return 0;
    const double along = mode == "cubic" || mode == "bicubic" ? 4 : 2;
    return 2 * std::pow(along, static_cast<double>(dims));
}

std::string grid_sample(Import& import, const onnx::NodeProto& node) {
    if (import.graph.keeps_values() && put_sampled(import, node)) return "";
    const std::size_t dims = std::max<std::size_t>(1, import.sample(node, node.input(0)).size() - 1);
    return compound(import, node, interpolated(text(node, "mode", "bilinear"), dims));
}

std::string affine_grid(Import& import, const onnx::NodeProto& node) {
    const auto dims = static_cast<double>(import.sample(node, node.output(0)).back());
    return compound(import, node, 2 * dims);  // a row of the matrix times a point and 1
}

// Each number of the result is a mean over points of its cell, or the largest of them.
std::string pool_of_regions(Import& import, const onnx::NodeProto& node) {
    std::int64_t points = integer(node, "sampling_ratio", 0);
    if (points < 1) {
        points = 2;
        ++import.notes["a region's points depend on its size: two along each side are counted (RoiAlign, MaxRoiPool)"];
    }
    const double all = static_cast<double>(points * points);
    return compound(import, node, node.op_type() == "RoiAlign" ? all * (interpolated("linear", 2) + 1) : all);
}

// Columns of the window's taps, each interpolated where its offset points to; then a 1x1 convolution over all of them.
std::string deform_conv(Import& import, const onnx::NodeProto& node) {
    const Shape out = import.sample(node, node.output(0)), image = import.sample(node, node.input(0));
    const Shape filters = import.weights(node, 1, 4);
    if (out.size() != 3 || image.size() != 3) return "it reads no image";
    const std::int64_t groups = std::max<std::int64_t>(1, integer(node, "group", 1));
    const std::int64_t taps = filters[2] * filters[3];
    if (static_cast<double>(image[0]) * static_cast<double>(taps) > largest_tensor) return "its columns are too large";
    const bool bias = node.input_size() > 3 && !node.input(3).empty();
    const bool masked = node.input_size() > 4 && !node.input(4).empty();
    Elementwise columns{"compound", {image[0] * taps, out[1], out[2]}, {}};
    columns.numbers = {interpolated("linear", 2) + (masked ? 1 : 0)};
    std::vector<int> from;
    for (const int i : {0, 2, 4}) {
        if (i >= node.input_size() || node.input(i).empty() || import.graph.constant(node.input(i))) continue;
        from.push_back(import.source(node, i));
        columns.inputs.push_back(import.builder.shape(from.back()));
    }
    const int sampled = import.builder.layer(import.name_for(node), std::move(columns), std::move(from));
    const Conv op{.channels = image[0] * taps,
                  .height = out[1],
                  .width = out[2],
                  .filters = filters[0],
                  .window = {},
                  .groups = groups,
                  .bias = bias};
    import.put(node, op, {sampled}, import.tensors(node, 1, 1));
    return "";
}

std::string fourier(Import& import, const onnx::NodeProto& node) {
    const Shape from = import.sample(node, node.input(0)), to = import.sample(node, node.output(0));
    double length = 0, signals = 1;
    if (node.op_type() == "STFT") {
        if (to.size() < 2) return "its frames cannot be told";
        signals = static_cast<double>(to[to.size() - 3 < to.size() ? to.size() - 3 : 0]);
        length = static_cast<double>(2 * (to[to.size() - 2] - 1));
        const auto frame = node.input_size() > 3 ? import.graph.numbers(node.input(3)) : std::nullopt;
        if (frame && frame->size() == 1) length = static_cast<double>(frame->front());
    } else {
        const Value& value = import.graph.value(node.input(0));
        std::int64_t axis = integer(node, "axis", 1);
        if (import.graph.opset() >= 20 && node.input_size() > 2 && import.graph.numbers(node.input(2)))
            axis = import.graph.numbers(node.input(2))->front();
        const auto rank = static_cast<std::int64_t>(value.dims ? value.dims->size() : 0);
        if (axis < 0) axis += rank;
        if (axis < 0 || axis >= rank) return "its axis cannot be told";
        length = static_cast<double>((*value.dims)[static_cast<std::size_t>(axis)]);
        signals = count(from) / static_cast<double>(from.back()) / std::max(1.0, length);
    }
    return compound(import, node, signals * transform(length) / std::max(1.0, count(to)));
}

// By Gaussian elimination: of n x n, the sum over its steps of (n - k) quotients and (n - k)^2 multiply-adds, then the
// product of the diagonal.
std::string determinant(Import& import, const onnx::NodeProto& node) {
    const auto n = static_cast<double>(import.sample(node, node.input(0)).back());
    return compound(import, node, n * (n - 1) / 2 + n * (n - 1) * (2 * n - 1) / 3 + n - 1);
}

// Every number of the columns is added to a pixel.
std::string columns_to_image(Import& import, const onnx::NodeProto& node) {
    const Shape from = import.sample(node, node.input(0)), to = import.sample(node, node.output(0));
    return compound(import, node, count(from) / std::max(1.0, count(to)));
}

std::string moved(Import& import, const onnx::NodeProto& node) {
    Operands from = import.operands(node);
    if (from.layers.empty()) return "it reads no activation";
    import.put(node, Rearrangement{"pack", from.inputs, import.sample(node, node.output(0))}, std::move(from.layers));
    return "";
}

std::string one_hot(Import& import, const onnx::NodeProto& node) {
    if (node.input_size() < 3) import.graph.fail(node, "it has no depth and values");
    const auto depth = import.graph.scalar(node.input(1));
    const auto& values = import.graph.value(node.input(2)).data;
    const Shape to = import.sample(node, node.output(0)), from = import.sample(node, node.input(0));
    constexpr std::int64_t most_depth = 1 << 24;
    const bool last =
        integer(node, "axis", -1) == -1 && depth && !to.empty() && to.back() == *depth && to.back() <= most_depth;
    if (!import.graph.keeps_values() || !last || !values || values->size() != 2 || (*values)[0] != 0 ||
        (*values)[1] != 1 || !import.graph.activation(node.input(0)))
        return compound(import, node, 1);  // a comparison
    Shape column = to;
    column.back() = 1;
    if (elements(column) != elements(from)) return compound(import, node, 1);
    Elementwise op{"equal", to, {column}, {}, {{to.back()}}};
    const int layer = import.put(node, std::move(op), {import.source(node, 0, column)});
    std::vector<float> numbers(static_cast<std::size_t>(to.back()));
    std::iota(numbers.begin(), numbers.end(), 0.0F);
    import.given[layer].fixed = {std::move(numbers)};
    return "";
}

std::string multinomial(Import& import, const onnx::NodeProto& node) {
    const Shape from = import.sample(node, node.input(0));
    return compound(import, node, 8 + static_cast<double>(from.back()));  // a random number, and where it falls
}

// The largest and the smallest, and of each number a quotient, a sum, a rounding and two bounds.
std::string quantize(Import& import, const onnx::NodeProto& node) {
    const int from = import.source(node, 0);
    const Shape shape = import.builder.shape(from);
    std::vector<std::int64_t> axes;
    for (std::size_t i = 0; i < shape.size(); ++i) axes.push_back(static_cast<std::int64_t>(i));
    for (const int output : {1, 2}) {
        if (output >= node.output_size() || node.output(output).empty()) continue;
        import.places[node.output(output)] = {
            import.builder.layer(import.name_for(node), Reduction{output == 1 ? "max" : "min", shape, axes}, {from}),
            ""};
    }
    Elementwise op{"compound", shape, {shape}};
    op.numbers = {5};
    import.put(node, std::move(op), {from});
    return "";
}

// Products of 8 bits: as many operations; scales and zero points belong to what reads and writes them.
std::string integer_product(Import& import, const onnx::NodeProto& node) {
    const std::string& type = node.op_type();
    if (type == "ConvInteger") return conv(import, with_inputs(node, "Conv", {0, 1}));
    if (type == "QLinearConv") return conv(import, with_inputs(node, "Conv", {0, 3, 8}));
    return product(import, with_inputs(node, "MatMul", {0, type == "MatMulInteger" ? 1 : 3}));
}

std::string swish(Import& import, const onnx::NodeProto& node) {
    const int from = import.source(node, 0);
    const Shape shape = import.builder.shape(from);
    import.put(node, Elementwise{"silu", shape, { shape }}, {from});
    return "";
}

std::string rotary(Import& import, const onnx::NodeProto& node) {
    const int from = import.source(node, 0);
    const Shape shape = import.builder.shape(from);
    const std::int64_t turned = integer(node, "rotary_embedding_dim", 0);
    const std::int64_t heads = integer(node, "num_heads", 0);
    Elementwise op{"rotary", shape, {shape}};
    for (const int i : {1, 2}) {
        const auto dims = i < node.input_size() ? import.graph.dims(node.input(i)) : std::nullopt;
        if (dims && !dims->empty()) op.constants.push_back(*dims);
    }
    if (turned > 0) op.numbers = {static_cast<double>(turned * std::max<std::int64_t>(1, heads))};
    import.put(node, std::move(op), {from});
    return "";
}

// Rows of queries, keys and values; what is kept of earlier tokens, and masks of data, are not ours.
std::string attention(Import& import, const onnx::NodeProto& node) {
    for (int i = 3; i < node.input_size(); ++i)
        if (!node.input(i).empty()) return "it has a mask or keys of earlier tokens";
    const std::int64_t heads = integer(node, "q_num_heads", 0), keys = integer(node, "kv_num_heads", 0);
    if (heads < 1 || keys < 1 || node.input_size() < 3) return "it does not say its heads (q_num_heads, kv_num_heads)";
    std::vector<int> from;
    std::array<Shape, 3> shapes;
    for (int i = 0; i < 3; ++i) {
        Shape shape = import.sample(node, node.input(i));
        if (shape.size() != 2) return "it does not read rows";
        shapes[static_cast<std::size_t>(i)] = shape;
        from.push_back(import.source(node, i, shape[0] == 1 ? Shape{shape[1]} : shape));
    }
    if (shapes[0][1] % heads != 0 || shapes[1][1] % keys != 0 || shapes[2][1] % keys != 0)
        return "its heads do not share its rows evenly";
    Attention op{heads, shapes[0][0], shapes[1][0], shapes[0][1] / heads, integer(node, "is_causal", 0) != 0};
    if (keys != heads) op.key_heads = keys;
    if (shapes[2][1] / keys != op.head_size) op.value_size = shapes[2][1] / keys;
    import.put(node, op, std::move(from));
    return "";
}

// Where the largest numbers lay: as many integers as the pool has results.
std::string max_pool_and_places(Import& import, const onnx::NodeProto& node) {
    if (node.output_size() < 2 || import.graph.readers(node.output(1)) == 0) return max_pool(import, node);
    onnx::NodeProto alone = node;
    alone.mutable_output()->DeleteSubrange(1, node.output_size() - 1);
    if (std::string why = max_pool(import, alone); !why.empty()) return why;
    const int from = import.source(node, 0);
    import.put(node, Rearrangement{"pack", {import.builder.shape(from)}, import.sample(node, node.output(1))}, {from},
               {}, 1);
    return "";
}

void set_list(onnx::NodeProto& node, const char* name, const std::vector<std::int64_t>& values) {
    auto& attribute = *node.add_attribute();
    attribute.set_name(name);
    attribute.set_type(onnx::AttributeProto::INTS);
    for (const std::int64_t value : values) attribute.add_ints(value);
}

// A transposed convolution whose padding follows from its output's size: what its taps reach beyond that is padding,
// half on each side, what they do not reach is output padding (ONNX's ConvTranspose).
std::string transposed_to_size(Import& import, const onnx::NodeProto& node) {
    const std::string automatic = text(node, "auto_pad", "NOTSET");
    if (!automatic.starts_with("SAME") && !has(node, "output_shape")) return conv_transpose(import, node);
    const auto from = import.graph.dims(node.input(0)), to = import.graph.dims(node.output(0));
    const auto weights = node.input_size() > 1 ? import.graph.dims(node.input(1)) : std::nullopt;
    if (!from || !to || !weights || to->size() < 3 || from->size() != to->size() || weights->size() != to->size())
        return "its padding follows from sizes that are not known";
    const std::size_t rank = to->size() - 2;
    const auto strides = import.graph.integers(node, "strides", rank, 1);
    const auto dilations = import.graph.integers(node, "dilations", rank, 1);
    auto outside = import.graph.integers(node, "output_padding", rank, 0);
    std::vector<std::int64_t> pads(2 * rank);
    for (std::size_t i = 0; i < rank; ++i) {
        const auto real = [](std::int64_t number) { return static_cast<double>(number); };
        const double wanted = real(strides[i]) * real((*from)[i + 2] - 1) + real(outside[i]) +
                              real(dilations[i]) * real((*weights)[i + 2] - 1) + 1 - real((*to)[i + 2]);
        if (!(std::abs(wanted) <= largest_tensor) || outside[i] < 0) return "its padding is impossibly large";
        const auto total = static_cast<std::int64_t>(wanted);
        const std::int64_t half = std::max<std::int64_t>(0, total) / 2, rest = std::max<std::int64_t>(0, total) - half;
        pads[i] = automatic == "SAME_UPPER" ? half : rest;
        pads[i + rank] = automatic == "SAME_UPPER" ? rest : half;
        outside[i] += std::max<std::int64_t>(0, -total);
    }
    onnx::NodeProto padded = node;
    padded.clear_attribute();
    for (const auto& attribute : node.attribute()) {
        const std::string& name = attribute.name();
        if (name != "auto_pad" && name != "output_shape" && name != "pads" && name != "output_padding")
            *padded.add_attribute() = attribute;
    }
    set_list(padded, "pads", pads);
    set_list(padded, "output_padding", outside);
    return conv_transpose(import, padded);
}

struct Entry {
    std::string_view op_type;
    Translate translate;
};
constexpr std::array table{
    Entry{"AffineGrid", affine_grid},
    Entry{"Attention", attention},
    Entry{"CenterCropPad", moved},
    Entry{"Col2Im", columns_to_image},
    Entry{"ConvInteger", integer_product},
    Entry{"DFT", fourier},
    Entry{"DeformConv", deform_conv},
    Entry{"Det", determinant},
    Entry{"DynamicQuantizeLinear", quantize},
    Entry{"BitwiseNot", elementwise},
    Entry{"ConvTranspose", transposed_to_size},
    Entry{"DequantizeLinear", elementwise},
    Entry{"Einsum", einsum},
    Entry{"MaxPool", max_pool_and_places},
    Entry{"QuantizeLinear", elementwise},
    Entry{"EyeLike", moved},
    Entry{"GlobalLpPool", lp_pool},
    Entry{"GridSample", grid_sample},
    Entry{"LpPool", lp_pool},
    Entry{"MatMulInteger", integer_product},
    Entry{"MaxRoiPool", pool_of_regions},
    Entry{"MaxUnpool", moved},
    Entry{"Multinomial", multinomial},
    Entry{"OneHot", one_hot},
    Entry{"QLinearConv", integer_product},
    Entry{"QLinearMatMul", integer_product},
    Entry{"RoiAlign", pool_of_regions},
    Entry{"RotaryEmbedding", rotary},
    Entry{"STFT", fourier},
    Entry{"Swish", swish},
    Entry{"TensorScatter", scatter},
};

}  // namespace

Translate rare_translation(std::string_view op_type) {
    const auto* const found = std::ranges::find(table, op_type, &Entry::op_type);
    return found == table.end() ? nullptr : found->translate;
}

}  // namespace rehearse::models
