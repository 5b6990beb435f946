// SPDX-License-Identifier: Apache-2.0
// The sizes that sliding windows, products and interpolations make.
#include <algorithm>
#include <cctype>
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
        // A last window that starts in the padding behind is left out: ONNX says so since operator set 19, and PyTorch,
        // whose files of any set have such sizes, always did.
        if (up && (count - 1) * strides[i] >= size + pads[i]) --count;
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

namespace {

// Of the letters of one operand or of the result, "..." as the last `count` of `hidden`.
std::string written_out(std::string letters, std::string_view hidden, std::size_t count) {
    const std::size_t dots = letters.find("...");
    if (dots != std::string::npos) letters.replace(dots, 3, hidden.substr(hidden.size() - count));
    return letters;
}

// Where an equation does not say what it makes: what "..." stands for, then the letters that stand there once.
std::string implied(const std::string& terms) {
    std::string made = terms.find("...") == std::string::npos ? "" : "...";
    for (char letter = 'A'; letter <= 'z'; ++letter)
        if (std::isalpha(static_cast<unsigned char>(letter)) != 0 && std::ranges::count(terms, letter) == 1)
            made += letter;
    return made;
}

}  // namespace

Einsum einsum_of(std::string equation, const std::vector<Shape>& operands) {
    std::erase(equation, ' ');
    const auto unfit = [&](std::string_view why) {
        return Einsum{{}, "", {}, fmt::format("its equation '{}' {}", equation, why)};
    };
    const std::size_t arrow = equation.find("->");
    const std::string terms = equation.substr(0, arrow);
    Einsum read{{""}, arrow == std::string::npos ? implied(terms) : equation.substr(arrow + 2), {}, ""};
    for (const char each : terms) {
        if (each == ',') read.terms.emplace_back();
        if (each != ',') read.terms.back() += each;
    }
    if (read.terms.size() != operands.size()) return unfit(fmt::format("is not of {} operands", operands.size()));
    constexpr std::string_view hidden = "0123456789";
    std::size_t most = 0;
    for (std::size_t i = 0; i < operands.size(); ++i) {
        std::string& letters = read.terms[i];
        const bool dots = letters.find("...") != std::string::npos;
        const std::size_t rank = operands[i].size(), said = letters.size() - (dots ? 3 : 0);
        if (said > rank || (!dots && said < rank) || rank - said > hidden.size())
            return unfit(fmt::format("has {} letters for {}", said, to_string(operands[i])));
        most = std::max(most, rank - said);
        letters = written_out(letters, hidden, rank - said);
        for (std::size_t d = 0; d < rank; ++d) {
            std::int64_t& size = read.sizes[letters[d]];
            const std::int64_t here = operands[i][d];
            if (size > 1 && here > 1 && size != here)
                return unfit(fmt::format("meets a size of {} with one of {} in '{}'", size, here, letters[d]));
            size = std::max(size, here);
        }
    }
    read.made = written_out(read.made, hidden, most);
    for (const char letter : read.made)
        if (!read.sizes.contains(letter)) return unfit(fmt::format("makes '{}', which no operand has", letter));
    return read;
}

std::optional<Shape> Inference::shape_of_einsum(const onnx::NodeProto& node) const {
    const auto read = einsum_of(node);
    if (!read) return std::nullopt;
    if (!read->why_not.empty()) {
        why_ = read->why_not;
        return std::nullopt;
    }
    Shape made;
    for (const char letter : read->made) made.push_back(read->sizes.at(letter));
    return made;
}

std::optional<Einsum> Inference::einsum_of(const onnx::NodeProto& node) const {
    std::vector<Shape> operands;
    for (int i = 0; i < node.input_size(); ++i) {
        if (!in(node, i).dims) return std::nullopt;
        operands.push_back(*in(node, i).dims);
    }
    return rehearse::models::einsum_of(text(node, "equation", ""), operands);
}

}  // namespace rehearse::models
