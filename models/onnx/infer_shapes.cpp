// SPDX-License-Identifier: Apache-2.0
// The sizes that each operator makes, one function a family, and the table of them.
#include <algorithm>
#include <numeric>

#include <fmt/format.h>

#include "models/onnx/infer.hpp"

namespace rehearse::models {
namespace {

using Sizes = std::vector<std::int64_t>;

bool is_one_of(std::string_view word, std::initializer_list<std::string_view> words) {
    return std::ranges::find(words, word) != words.end();
}

std::int64_t positive_modulo(std::int64_t value, std::int64_t size) { return value < 0 ? value + size : value; }

Shape without_last(const Shape& shape, std::size_t count) {
    return {shape.begin(), shape.end() - static_cast<std::ptrdiff_t>(std::min(count, shape.size()))};
}

}  // namespace

std::optional<Shape> Inference::shape_of_window(const onnx::NodeProto& node, bool pool) const {
    const auto& x = in(node, 0).dims;
    if (!x || x->size() < 3) return std::nullopt;
    const std::size_t spatial = x->size() - 2;
    const auto& w = in(node, 1).dims;
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
        // A last window that starts in the padding behind is left out.
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

std::optional<Shape> Inference::shape_of_reshape(const onnx::NodeProto& node) const {
    const auto& x = in(node, 0).dims;
    if (!x) return std::nullopt;
    auto wanted = list(node, "shape");
    if (!wanted) wanted = known(node, 1);
    if (!wanted) return std::nullopt;
    const bool zeros = integer(node, "allowzero", 0) != 0;
    int open = -1;
    double fixed = 1, all = 1;
    for (const std::int64_t size : *x) all *= static_cast<double>(size);
    for (std::size_t i = 0; i < wanted->size(); ++i) {
        std::int64_t& size = (*wanted)[i];
        if (size == 0 && !zeros) {
            if (i >= x->size()) return std::nullopt;
            size = (*x)[i];
        }
        if (size == -1) {
            if (open >= 0) return std::nullopt;
            open = static_cast<int>(i);
        } else {
            fixed *= static_cast<double>(size);
        }
        if (size < -1) return std::nullopt;
    }
    if (open >= 0) {
        if (!(fixed > 0) || std::fmod(all, fixed) != 0) {
            why_ = fmt::format("{} elements cannot be cut into pieces of {}", all, fixed);
            return std::nullopt;
        }
        (*wanted)[static_cast<std::size_t>(open)] = static_cast<std::int64_t>(all / fixed);
    } else if (fixed != all) {
        why_ = fmt::format("{} cannot be seen as {}", to_string(*x), to_string(*wanted));
        return std::nullopt;
    }
    return wanted;
}

std::optional<Shape> Inference::shape_of_slice(const onnx::NodeProto& node) const {
    const auto& x = in(node, 0).dims;
    if (!x) return std::nullopt;
    auto starts = list(node, "starts"), ends = list(node, "ends");
    if (!starts) starts = known(node, 1);
    if (!ends) ends = known(node, 2);
    if (!starts || !ends || starts->size() != ends->size()) return std::nullopt;
    auto axes = axes_of(node, 3, x->size());
    if (!axes) return std::nullopt;
    if (axes->empty()) {
        axes->resize(starts->size());
        std::iota(axes->begin(), axes->end(), 0);
    }
    Sizes steps(starts->size(), 1);
    if (given(node, 4)) {
        const auto asked = known(node, 4);
        if (!asked) return std::nullopt;
        steps = *asked;
    }
    if (axes->size() != starts->size() || steps.size() != starts->size()) return std::nullopt;
    Shape made = *x;
    for (std::size_t i = 0; i < axes->size(); ++i) {
        if (static_cast<std::size_t>((*axes)[i]) >= made.size() || steps[i] == 0) return std::nullopt;
        std::int64_t& size = made[static_cast<std::size_t>((*axes)[i])];
        const std::int64_t whole = size;
        std::int64_t begin = positive_modulo((*starts)[i], whole), end = positive_modulo((*ends)[i], whole);
        if (steps[i] > 0) {
            begin = std::clamp<std::int64_t>(begin, 0, whole), end = std::clamp<std::int64_t>(end, 0, whole);
            size = std::max<std::int64_t>(0, (end - begin + steps[i] - 1) / steps[i]);
        } else {
            begin = std::clamp<std::int64_t>(begin, 0, whole - 1), end = std::clamp<std::int64_t>(end, -1, whole - 1);
            if (steps[i] == std::numeric_limits<std::int64_t>::min()) return std::nullopt;
            size = std::max<std::int64_t>(0, (begin - end - steps[i] - 1) / -steps[i]);
        }
    }
    return made;
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

// Values that keep their number or are picked by position.
std::optional<Shape> Inference::moved(const onnx::NodeProto& node) const {
    const std::string& type = node.op_type();
    const auto& x = in(node, 0).dims;
    if (!x) return std::nullopt;
    if (type == "Transpose") {
        auto perm = list(node, "perm");
        Shape made(x->rbegin(), x->rend());
        if (!perm) return made;
        if (perm->size() != x->size()) return std::nullopt;
        for (std::size_t i = 0; i < perm->size(); ++i) {
            const std::int64_t from = (*perm)[i];
            if (from < 0 || from >= static_cast<std::int64_t>(x->size())) return std::nullopt;
            made[i] = (*x)[static_cast<std::size_t>(from)];
        }
        return made;
    }
    if (type == "Flatten") {
        const auto axis = axis_of(node, x->size(), 1);
        if (!axis) return std::nullopt;
        const auto middle = x->begin() + static_cast<std::ptrdiff_t>(*axis);
        return Shape{elements({x->begin(), middle}), elements({middle, x->end()})};
    }
    if (type == "Squeeze" || type == "Unsqueeze") {
        const bool squeeze = type == "Squeeze";
        std::size_t rank = x->size();
        if (!squeeze) {
            auto given_axes = list(node, "axes");
            if (!given_axes) given_axes = known(node, 1);
            if (!given_axes) return std::nullopt;
            rank += given_axes->size();
        }
        const auto axes = axes_of(node, 1, rank);
        if (!axes) return std::nullopt;
        const auto named = [&](std::size_t i) {
            return std::ranges::find(*axes, static_cast<std::int64_t>(i)) != axes->end();
        };
        Shape made;
        std::size_t next = 0;
        for (std::size_t i = 0; i < rank; ++i) {
            if (!squeeze) {
                made.push_back(named(i) ? 1 : next < x->size() ? (*x)[next++] : 1);
            } else if (!(axes->empty() ? (*x)[i] == 1 : named(i))) {
                made.push_back((*x)[i]);
            } else if ((*x)[i] != 1) {
                why_ = fmt::format("dimension {} of {} is no 1", i, to_string(*x));
                return std::nullopt;
            }
        }
        return made;
    }
    if (type == "Expand") {
        const auto to = known(node, 1);
        return to ? broadcast(*x, *to) : std::nullopt;
    }
    if (type == "Tile") {
        const auto repeats = known(node, 1);
        if (!repeats || repeats->size() != x->size()) return std::nullopt;
        Shape made = *x;
        for (std::size_t i = 0; i < made.size(); ++i) {
            if ((*repeats)[i] < 0 || static_cast<double>((*repeats)[i]) * static_cast<double>(made[i]) > largest_tensor)
                return std::nullopt;
            made[i] *= (*repeats)[i];
        }
        return made;
    }
    if (type == "Pad") {
        auto pads = list(node, "pads");
        if (!pads) pads = list(node, "paddings");
        if (!pads) pads = known(node, 1);
        if (!pads) return std::nullopt;
        const auto axes = given(node, 3) ? axes_of(node, 3, x->size()) : std::optional<Sizes>{Sizes{}};
        if (!axes) return std::nullopt;
        Sizes along = *axes;
        if (along.empty()) {
            along.resize(x->size());
            std::iota(along.begin(), along.end(), 0);
        }
        if (pads->size() != 2 * along.size()) return std::nullopt;
        Shape made = *x;
        for (std::size_t i = 0; i < along.size(); ++i) {
            std::int64_t& size = made[static_cast<std::size_t>(along[i])];
            const std::int64_t before = (*pads)[i], after = (*pads)[i + along.size()];
            constexpr std::int64_t most = 1 << 20;
            if (std::abs(before) > most || std::abs(after) > most) return std::nullopt;
            size += before + after;
            if (size < 0) return std::nullopt;
        }
        return made;
    }
    const std::int64_t block = integer(node, "blocksize", 1);
    if (x->size() != 4 || block < 1) return std::nullopt;
    if (type == "DepthToSpace") return Shape{(*x)[0], (*x)[1] / (block * block), (*x)[2] * block, (*x)[3] * block};
    return Shape{(*x)[0], (*x)[1] * block * block, (*x)[2] / block, (*x)[3] / block};
}

std::optional<Shape> Inference::picked(const onnx::NodeProto& node) const {
    const std::string& type = node.op_type();
    const auto& x = in(node, 0).dims;
    const auto& indices = in(node, 1).dims;
    if (!x || !indices) return std::nullopt;
    if (type == "Gather") {
        const auto axis = axis_of(node, x->size(), 0);
        if (!axis || *axis >= x->size()) return std::nullopt;
        const auto at = static_cast<std::ptrdiff_t>(*axis);
        Shape made(x->begin(), x->begin() + at);
        made.insert(made.end(), indices->begin(), indices->end());
        made.insert(made.end(), x->begin() + at + 1, x->end());
        return made;
    }
    if (type == "GatherElements") return indices;
    // GatherND
    const std::int64_t batch = integer(node, "batch_dims", 0);
    if (indices->empty() || batch < 0 || indices->back() < 1) return std::nullopt;
    const std::int64_t taken = batch + indices->back();
    if (taken > static_cast<std::int64_t>(x->size())) return std::nullopt;
    Shape made = without_last(*indices, 1);
    made.insert(made.end(), x->begin() + taken, x->end());
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

std::vector<std::optional<Shape>> Inference::shapes(const onnx::NodeProto& node) {
    const std::string& type = node.op_type();
    if (!node.domain().empty() && node.domain() != "ai.onnx") return {};
    const std::optional<Shape> x = in(node, 0).dims;
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
    if (is_one_of(type, {"NonZero",
                         "Compress",
                         "Unique",
                         "NonMaxSuppression",
                         "If",
                         "Loop",
                         "Scan",
                         "Optional",
                         "SequenceConstruct",
                         "StringNormalizer",
                         "TfIdfVectorizer",
                         "Det",
                         "DFT",
                         "STFT",
                         "Col2Im",
                         "SequenceAt",
                         "SplitToSequence",
                         "ConcatFromSequence",
                         "SequenceEmpty",
                         "SequenceInsert",
                         "LabelEncoder",
                         "CenterCropPad",
                         "AffineGrid",
                         "MaxUnpool",
                         "BlackmanWindow",
                         "HannWindow",
                         "HammingWindow",
                         "MelWeightMatrix",
                         "OptionalGetElement",
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
