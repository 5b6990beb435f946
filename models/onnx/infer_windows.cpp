// SPDX-License-Identifier: Apache-2.0
// The sizes that sliding windows, products and interpolations make.
#include <algorithm>
#include <numeric>

#include <fmt/format.h>

#include "models/onnx/infer.hpp"

namespace rehearse::models {

std::optional<Shape> Inference::shape_of_window(const onnx::NodeProto& node, bool pool) const {
    const auto& x = in(node, 0).dims;
    if (!x || x->size() < 3) return std::nullopt;
    const std::size_t spatial = x->size() - 2;
    const auto& w = in(node, node.op_type() == "QLinearConv" ? 3 : 1).dims;
    if (!pool && (!w || w->size() != x->size())) return std::nullopt;
    const Sizes kernel = pool ? graph_.integers(node, "kernel_shape", spatial, 0) : Sizes(w->begin() + 2, w->end());
    const Sizes strides = graph_.integers(node, "strides", spatial, 1);
    const Sizes dilations = graph_.integers(node, "dilations", spatial, 1);
    const Sizes pads = graph_.integers(node, "pads", 2 * spatial, 0);
    const std::string automatic = text(node, "auto_pad", "NOTSET");
    const bool up = pool && integer(node, "ceil_mode", 0) != 0;
    Shape made{(*x)[0], pool ? (*x)[1] : (*w)[0]};
    for (std::size_t i = 0; i < spatial; ++i) {
        if (strides[i] < 1 || kernel[i] < 1) return std::nullopt;
        const std::int64_t size = (*x)[i + 2];
        if (automatic.starts_with("SAME")) {
            made.push_back((size + strides[i] - 1) / strides[i]);
            continue;
        }
        const std::int64_t room = size + pads[i] + pads[i + spatial] - dilations[i] * (kernel[i] - 1) - 1;
        if (room < 0) return std::nullopt;
        std::int64_t count = (room + (up ? strides[i] - 1 : 0)) / strides[i] + 1;
        // Since operator set 19 a last window that starts in the padding behind is left out.
        if (up && graph_.opset_ >= 19 && (count - 1) * strides[i] >= size + pads[i]) --count;
        made.push_back(count);
    }
    return made;
}

std::optional<Shape> Inference::shape_of_transposed(const onnx::NodeProto& node) const {
    const auto& x = in(node, 0).dims;
    const auto& w = in(node, 1).dims;
    if (!x || !w || x->size() < 3 || w->size() != x->size()) return std::nullopt;
    const std::size_t spatial = x->size() - 2;
    Shape made{(*x)[0], (*w)[1] * integer(node, "group", 1)};
    const auto output = list(node, "output_shape");
    const Sizes strides = graph_.integers(node, "strides", spatial, 1);
    const Sizes dilations = graph_.integers(node, "dilations", spatial, 1);
    const Sizes pads = graph_.integers(node, "pads", 2 * spatial, 0);
    const Sizes outside = graph_.integers(node, "output_padding", spatial, 0);
    const bool same = text(node, "auto_pad", "NOTSET").starts_with("SAME");
    for (std::size_t i = 0; i < spatial; ++i) {
        if (output && output->size() >= spatial) {
            made.push_back((*output)[output->size() - spatial + i]);
        } else if (same) {
            made.push_back((*x)[i + 2] * strides[i]);
        } else {
            made.push_back(strides[i] * ((*x)[i + 2] - 1) + outside[i] + dilations[i] * ((*w)[i + 2] - 1) + 1 -
                           pads[i] - pads[i + spatial]);
        }
        if (made.back() < 1) return std::nullopt;
    }
    return made;
}

std::optional<Shape> Inference::windows(const onnx::NodeProto& node) const {
    const std::string& type = node.op_type();
    const auto& x = in(node, 0).dims;
    if (!x) return std::nullopt;
    if (type.starts_with("Global")) {
        if (x->size() < 3) return std::nullopt;
        Shape made(x->size(), 1);
        made[0] = (*x)[0], made[1] = (*x)[1];
        return made;
    }
    if (type == "GridSample" || type == "MaxRoiPool" || type == "RoiAlign") {
        const auto& where = in(node, 1).dims;
        if (!where || where->empty() || x->size() < 3) return std::nullopt;
        if (type == "GridSample") {
            if (where->size() != x->size()) return std::nullopt;
            Shape made{(*x)[0], (*x)[1]};
            made.insert(made.end(), where->begin() + 1, where->end() - 1);
            return made;
        }
        const auto pooled = list(node, "pooled_shape");
        return Shape{(*where)[0], (*x)[1],
                     pooled && pooled->size() == 2 ? (*pooled)[0] : integer(node, "output_height", 1),
                     pooled && pooled->size() == 2 ? (*pooled)[1] : integer(node, "output_width", 1)};
    }
    return std::nullopt;
}

std::optional<Shape> Inference::shape_of_resize(const onnx::NodeProto& node) const {
    const auto& x = in(node, 0).dims;
    if (!x) return std::nullopt;
    const bool upsample = node.op_type() == "Upsample";
    const int scales_at = upsample || graph_.opset_ < 11 ? 1 : 2;
    const auto chosen = list(node, "axes");
    Sizes axes(x->size());
    std::iota(axes.begin(), axes.end(), 0);
    if (chosen) axes = *chosen;
    Shape made = *x;
    const auto put = [&](std::size_t i, double size) {
        const std::int64_t axis = positive_modulo(axes[i], static_cast<std::int64_t>(made.size()));
        if (axis < 0 || axis >= static_cast<std::int64_t>(made.size()) || !(size >= 1) || size > largest_tensor)
            return false;
        made[static_cast<std::size_t>(axis)] = static_cast<std::int64_t>(size);
        return true;
    };
    if (scales_at == 2 && given(node, 3)) {
        const auto sizes = known(node, 3);
        if (!sizes || sizes->size() != axes.size()) return std::nullopt;
        for (std::size_t i = 0; i < axes.size(); ++i)
            if (!put(i, static_cast<double>((*sizes)[i]))) return std::nullopt;
        return made;
    }
    std::vector<double> scales;
    if (given(node, scales_at) && in(node, scales_at).data) scales = *in(node, scales_at).data;
    for (const auto& attribute : node.attribute())
        if (attribute.name() == "scales") scales.assign(attribute.floats().begin(), attribute.floats().end());
    if (scales.size() != axes.size()) {
        why_ = "its scales depend on data";
        return std::nullopt;
    }
    for (std::size_t i = 0; i < axes.size(); ++i) {
        const std::int64_t axis = positive_modulo(axes[i], static_cast<std::int64_t>(made.size()));
        if (axis < 0 || axis >= static_cast<std::int64_t>(made.size())) return std::nullopt;
        // A scale of 1 is exact, others are rounded as they were stored in f32.
        const double size = static_cast<double>(made[static_cast<std::size_t>(axis)]) * scales[i];
        if (!put(i, std::floor(size * (1 + 1e-7)))) return std::nullopt;
    }
    return made;
}

std::optional<Shape> Inference::shape_of_product(const onnx::NodeProto& node) const {
    const auto& left = in(node, 0).dims;
    const auto& right = in(node, 1).dims;
    if (!left || !right || left->empty() || right->empty()) return std::nullopt;
    Shape a = *left, b = *right;
    if (a.size() == 1) a.insert(a.begin(), 1);
    if (b.size() == 1) b.push_back(1);
    if (a.back() != b[b.size() - 2]) {
        why_ = fmt::format("{} columns meet {} rows", a.back(), b[b.size() - 2]);
        return std::nullopt;
    }
    auto made = broadcast(without_last(a, 2), without_last(b, 2));
    if (!made) return std::nullopt;
    if (left->size() > 1) made->push_back(a[a.size() - 2]);
    if (right->size() > 1) made->push_back(b.back());
    return made;
}

std::optional<Shape> Inference::shape_of_einsum(const onnx::NodeProto& node) const {
    std::string equation = text(node, "equation", "");
    std::erase(equation, ' ');
    const std::size_t arrow = equation.find("->");
    if (arrow == std::string::npos || equation.find("...") != std::string::npos) {
        why_ = "the equation '" + equation + "' leaves its result or sizes open";
        return std::nullopt;
    }
    std::unordered_map<char, std::int64_t> sizes;
    std::size_t at = 0;
    for (int i = 0; i < node.input_size(); ++i) {
        const auto& dims = in(node, i).dims;
        const std::size_t end = std::min(equation.find(',', at), arrow);
        if (!dims || end < at || end - at != dims->size()) return std::nullopt;
        for (std::size_t d = 0; d < dims->size(); ++d) {
            std::int64_t& size = sizes[equation[at + d]];
            size = std::max(size, (*dims)[d]);
        }
        at = end + 1;
    }
    Shape made;
    for (std::size_t i = arrow + 2; i < equation.size(); ++i) {
        if (!sizes.contains(equation[i])) return std::nullopt;
        made.push_back(sizes[equation[i]]);
    }
    return made;
}

}  // namespace rehearse::models
