// SPDX-License-Identifier: Apache-2.0
// The sizes of values that only move: named anew, cut, picked by position.
#include <algorithm>
#include <numeric>

#include <fmt/format.h>

#include "models/onnx/infer.hpp"

namespace rehearse::models {

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
        if (whole < 0) return std::nullopt;
        if (whole == 0) continue;
        std::int64_t begin = positive_modulo((*starts)[i], whole), end = positive_modulo((*ends)[i], whole);
        if (steps[i] > 0) {
            begin = std::clamp<std::int64_t>(begin, 0, whole), end = std::clamp<std::int64_t>(end, 0, whole);
            size = end > begin ? (end - begin - 1) / steps[i] + 1 : 0;
        } else {
            begin = std::clamp<std::int64_t>(begin, 0, whole - 1), end = std::clamp<std::int64_t>(end, -1, whole - 1);
            if (steps[i] == std::numeric_limits<std::int64_t>::min()) return std::nullopt;
            size = begin > end ? (begin - end - 1) / -steps[i] + 1 : 0;
        }
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

}  // namespace rehearse::models
