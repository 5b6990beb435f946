// SPDX-License-Identifier: Apache-2.0
// The sizes that each operator makes: reductions, recurrent layers, and the table of all.
#include <algorithm>
#include <numeric>

#include <fmt/format.h>

#include "models/onnx/infer.hpp"

namespace rehearse::models {

std::optional<Shape> Inference::shape_of_reduction(const onnx::NodeProto& node, std::size_t axes_since) const {
    const auto& x = in(node, 0).dims;
    if (!x) return std::nullopt;
    auto axes = axes_of(node, graph_.opset_ >= static_cast<std::int64_t>(axes_since) ? 1 : 99, x->size());
    if (!axes) return std::nullopt;
    if (axes->empty()) {
        if (integer(node, "noop_with_empty_axes", 0) != 0) return x;
        axes->resize(x->size());
        std::iota(axes->begin(), axes->end(), 0);
    }
    const bool keep = integer(node, "keepdims", 1) != 0;
    Shape made;
    for (std::size_t i = 0; i < x->size(); ++i) {
        const bool gone = std::ranges::find(*axes, static_cast<std::int64_t>(i)) != axes->end();
        if (!gone) made.push_back((*x)[i]);
        if (gone && keep) made.push_back(1);
    }
    return made;
}

std::vector<std::optional<Shape>> Inference::shapes_of_split(const onnx::NodeProto& node) const {
    const auto& x = in(node, 0).dims;
    if (!x) return {};
    const auto axis = axis_of(node, x->size(), 0);
    if (!axis || *axis >= x->size()) return {};
    auto sizes = list(node, "split");
    if (!sizes && given(node, 1)) {
        sizes = known(node, 1);
        if (!sizes) return {};
    }
    const std::int64_t count = node.output_size(), whole = (*x)[*axis];
    if (!sizes) {
        const std::int64_t piece = count == 0 ? 0 : (whole + count - 1) / count;
        sizes.emplace();
        for (std::int64_t i = 0; i < count; ++i)
            sizes->push_back(std::clamp<std::int64_t>(whole - i * piece, 0, piece));
    }
    std::vector<std::optional<Shape>> made;
    std::int64_t sum = 0;
    for (const std::int64_t size : *sizes) {
        if (size < 0 || size > whole) return {};
        sum += size;
        made.push_back(*x);
        (*made.back())[*axis] = size;
    }
    return sum == whole ? made : std::vector<std::optional<Shape>>{};
}

std::vector<std::optional<Shape>> Inference::shapes_of_recurrent(const onnx::NodeProto& node, int gates) const {
    const auto& x = in(node, 0).dims;
    const auto& r = in(node, 2).dims;
    const auto& w = in(node, 1).dims;
    if (!x || !r || !w || x->size() != 3 || r->size() != 3 || w->size() != 3) return {};
    const std::int64_t directions = (*r)[0], hidden = (*r)[2];
    if ((*r)[1] != gates * hidden || (*w)[1] != gates * hidden || (*w)[2] != (*x)[2] || (*w)[0] != directions) {
        why_ =
            fmt::format("weights of {} and {} do not fit an input of {}", to_string(*w), to_string(*r), to_string(*x));
        return {};
    }
    const bool batch_first = integer(node, "layout", 0) == 1;
    const std::int64_t steps = (*x)[batch_first ? 1 : 0], batch = (*x)[batch_first ? 0 : 1];
    const Shape state = batch_first ? Shape{batch, directions, hidden} : Shape{directions, batch, hidden};
    const Shape y = batch_first ? Shape{batch, steps, directions, hidden} : Shape{steps, directions, batch, hidden};
    return {y, state, state};
}

std::vector<std::optional<Shape>> Inference::shapes(const onnx::NodeProto& node) {
    const std::string& type = node.op_type();
    if (!node.domain().empty() && node.domain() != "ai.onnx") return {};
    const std::optional<Shape> x = in(node, 0).dims;
    if (auto rare = shapes_of_rare(node)) return *std::move(rare);
    if (is_one_of(type, {"Conv", "ConvInteger", "QLinearConv"})) return {shape_of_window(node, false)};
    if (is_one_of(type, {"MaxPool", "AveragePool", "LpPool"})) {
        const auto made = shape_of_window(node, true);
        return {made, made};
    }
    if (type == "ConvTranspose") return {shape_of_transposed(node)};
    if (type == "MatMul" || type == "MatMulInteger") return {shape_of_product(node)};
    if (type == "Gemm") {
        const auto& w = in(node, 1).dims;
        if (!x || !w || x->size() != 2 || w->size() != 2) return {};
        const bool a = integer(node, "transA", 0) != 0, b = integer(node, "transB", 0) != 0;
        if ((*x)[a ? 0 : 1] != (*w)[b ? 1 : 0]) {
            why_ = fmt::format("{} columns meet {} rows", (*x)[a ? 0 : 1], (*w)[b ? 1 : 0]);
            return {};
        }
        return {Shape{(*x)[a ? 1 : 0], (*w)[b ? 0 : 1]}};
    }
    if (type == "Einsum") return {shape_of_einsum(node)};
    if (type == "Reshape") return {shape_of_reshape(node)};
    if (type == "Slice") return {shape_of_slice(node)};
    if (type == "Resize" || type == "Upsample") return {shape_of_resize(node)};
    if (type == "ReduceSum") return {shape_of_reduction(node, 13)};
    if (type.starts_with("Reduce")) return {shape_of_reduction(node, 18)};
    if (type == "ArgMax" || type == "ArgMin") {
        if (!x) return {};
        const auto axis = axis_of(node, x->size(), 0);
        if (!axis || *axis >= x->size()) return {};
        Shape made = *x;
        made[*axis] = 1;
        if (integer(node, "keepdims", 1) == 0) made.erase(made.begin() + static_cast<std::ptrdiff_t>(*axis));
        return {made};
    }
    if (type == "Split") return shapes_of_split(node);
    if (type == "LSTM") return shapes_of_recurrent(node, 4);
    if (type == "GRU") return shapes_of_recurrent(node, 3);
    if (type == "RNN") return shapes_of_recurrent(node, 1);
    if (is_one_of(type, {"Transpose", "Flatten", "Squeeze", "Unsqueeze", "Expand", "Tile", "Pad", "DepthToSpace",
                         "SpaceToDepth"}))
        return {moved(node)};
    if (is_one_of(type, {"Gather", "GatherElements", "GatherND"})) return {picked(node)};
    if (is_one_of(type, {"GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool", "GridSample", "MaxRoiPool", "RoiAlign"}))
        return {windows(node)};
    if (type == "Concat") {
        if (!x) return {};
        const auto axis = axis_of(node, x->size(), 1);
        if (!axis || *axis >= x->size()) return {};
        Shape made = *x;
        for (int i = 1; i < node.input_size(); ++i) {
            const auto& dims = in(node, i).dims;
            if (!dims || dims->size() != made.size()) return {};
            for (std::size_t d = 0; d < made.size(); ++d) {
                if (d == *axis) {
                    made[d] += (*dims)[d];
                } else if (made[d] != (*dims)[d]) {
                    why_ = fmt::format("{} and {} cannot be joined", to_string(*x), to_string(*dims));
                    return {};
                }
            }
        }
        return {made};
    }
    if (type == "Shape") {
        if (!x) return {};
        const auto rank = static_cast<std::int64_t>(x->size());
        const std::int64_t begin = std::clamp<std::int64_t>(positive_modulo(integer(node, "start", 0), rank), 0, rank);
        const std::int64_t end = std::clamp<std::int64_t>(positive_modulo(integer(node, "end", rank), rank), 0, rank);
        return {Shape{std::max<std::int64_t>(0, end - begin)}};
    }
    if (type == "Size") return {Shape{}};
    if (type == "Constant") {
        if (const auto* value = tensor(node, "value")) return {Shape(value->dims().begin(), value->dims().end())};
        for (const auto& attribute : node.attribute()) {
            if (attribute.name() == "value_ints") return {Shape{attribute.ints_size()}};
            if (attribute.name() == "value_floats") return {Shape{attribute.floats_size()}};
            if (attribute.name() == "value_int" || attribute.name() == "value_float") return {Shape{}};
        }
        return {};
    }
    if (type == "ConstantOfShape") {
        auto made = known(node, 0);
        if (made && std::ranges::any_of(*made, [](std::int64_t size) { return size < 0; })) made.reset();
        return {made};
    }
    if (type == "Range") {
        if (!in(node, 0).data || !in(node, 1).data || !in(node, 2).data) return {};
        for (int i = 0; i < 3; ++i)
            if (in(node, i).data->size() != 1) return {};
        const double begin = in(node, 0).data->front(), end = in(node, 1).data->front(),
                     step = in(node, 2).data->front();
        const double count = step == 0 ? 0 : std::ceil((end - begin) / step);
        if (!(std::abs(count) <= largest_tensor)) return {};
        return {Shape{static_cast<std::int64_t>(std::max(0.0, count))}};
    }
    if (type == "OneHot") {
        const auto depth = known(node, 1);
        if (!x || !depth || depth->size() != 1) return {};
        const auto axis = axis_of(node, x->size() + 1, -1);
        if (!axis) return {};
        Shape made = *x;
        made.insert(made.begin() + static_cast<std::ptrdiff_t>(std::min(*axis, made.size())), depth->front());
        return {made};
    }
    if (type == "TopK") {
        if (!x) return {};
        auto count = known(node, 1);
        if (has(node, "k")) count = Sizes{integer(node, "k", 1)};
        const auto axis = axis_of(node, x->size(), -1);
        if (!count || count->size() != 1 || !axis || *axis >= x->size()) return {};
        Shape made = *x;
        made[*axis] = count->front();
        return {made, made};
    }
    if (type == "BatchNormalization")
        return {x, in(node, 1).dims, in(node, 1).dims, in(node, 1).dims, in(node, 1).dims};
    if (type == "LayerNormalization") {
        if (!x) return {};
        const auto axis = axis_of(node, x->size(), -1);
        if (!axis) return {};
        Shape kept = *x;
        for (std::size_t i = *axis; i < kept.size(); ++i) kept[i] = 1;
        return {x, kept, kept};
    }
    if (type == "Dropout") return {x, x};
    if (is_one_of(type, {"RandomNormal", "RandomUniform"})) return {list(node, "shape")};
    if (type == "SoftmaxCrossEntropyLoss" || type == "NegativeLogLikelihoodLoss") {
        if (text(node, "reduction", "mean") == "none") return {in(node, 1).dims, x};
        return {Shape{}, x};
    }
    if (is_one_of(type, {"NonZero", "Compress", "Unique", "NonMaxSuppression", "If", "Loop", "Scan", "Optional",
                         "SequenceConstruct", "StringNormalizer", "TfIdfVectorizer", "SequenceAt", "SplitToSequence",
                         "ConcatFromSequence", "SequenceEmpty", "SequenceInsert", "LabelEncoder", "OptionalGetElement",
                         "OptionalHasElement"})) {
        return {};
    }
    if (is_one_of(type, {"Add",  "Sub",         "Mul",      "Div",        "Pow",       "Mod",
                         "And",  "Or",          "Xor",      "Equal",      "Greater",   "GreaterOrEqual",
                         "Less", "LessOrEqual", "PRelu",    "Where",      "Sum",       "Max",
                         "Min",  "Mean",        "BitShift", "BitwiseAnd", "BitwiseOr", "BitwiseXor"})) {
        std::optional<Shape> made = x;
        for (int i = 1; i < node.input_size() && made; ++i) {
            const auto& other = in(node, i).dims;
            const auto both = other ? broadcast(*made, *other) : std::nullopt;
            if (other && !both) why_ = fmt::format("{} and {} do not broadcast", to_string(*made), to_string(*other));
            made = both;
        }
        return {made};
    }
    return {x};  // elementwise of one operand, normalization, softmax, cumulative sums, scatter
}

}  // namespace rehearse::models
