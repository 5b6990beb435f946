// SPDX-License-Identifier: Apache-2.0
// The sizes of operators that few networks have (ops_rare.cpp).
#include <algorithm>
#include <cmath>

#include "models/onnx/infer.hpp"

namespace rehearse::models {
namespace {

using Made = std::vector<std::optional<Shape>>;

std::optional<Shape> scalar_of(const std::optional<std::vector<std::int64_t>>& values, std::int64_t add = 0) {
    if (!values || values->size() != 1 || values->front() < 0) return std::nullopt;
    return Shape{values->front() + add};
}

// {N, C k, L} -> {N, C, image}
std::optional<Shape> image_of_columns(const Shape& x, const Sizes& image, const Sizes& block) {
    if (x.size() != 3) return std::nullopt;
    std::int64_t taps = 1;
    for (const std::int64_t size : block) {
        if (size < 1 || size > x[1]) return std::nullopt;
        taps *= size;
        if (taps > x[1]) return std::nullopt;
    }
    if (x[1] % taps != 0) return std::nullopt;
    Shape made{x[0], x[1] / taps};
    made.insert(made.end(), image.begin(), image.end());
    return made;
}

}  // namespace

std::optional<Shape> Inference::shape_of_fourier(const onnx::NodeProto& node) const {
    const auto& x = in(node, 0).dims;
    if (!x || x->size() < 2) return std::nullopt;
    std::int64_t axis = integer(node, "axis", 1);
    if (given(node, 2)) {
        const auto said = known(node, 2);
        if (!said || said->size() != 1) return std::nullopt;
        axis = said->front();
    }
    const auto rank = static_cast<std::int64_t>(x->size());
    if (axis < 0) axis += rank;
    if (axis < 0 || axis >= rank - 1) return std::nullopt;
    Shape made = *x;
    std::int64_t& length = made[static_cast<std::size_t>(axis)];
    if (given(node, 1)) {
        const auto said = known(node, 1);
        if (!said || said->size() != 1) return std::nullopt;
        length = said->front();
    }
    if (integer(node, "onesided", 0) != 0 && integer(node, "inverse", 0) == 0) length = length / 2 + 1;
    made.back() = 2;
    return made;
}

// {N, signal, 1} -> {N, frames, bins, 2}
std::optional<Shape> Inference::shape_of_frames(const onnx::NodeProto& node) const {
    const auto& x = in(node, 0).dims;
    const auto step = known(node, 1), said = given(node, 3) ? known(node, 3) : std::nullopt;
    const auto& window = in(node, 2).dims;
    if (!x || x->size() < 2 || !step || step->size() != 1 || step->front() < 1) return std::nullopt;
    std::int64_t length = 0;
    if (said && said->size() == 1) length = said->front();
    if (length == 0 && window && window->size() == 1) length = window->front();
    const std::int64_t signal = (*x)[1];
    if (length < 1 || length > signal) return std::nullopt;
    const std::int64_t bins = integer(node, "onesided", 1) != 0 ? length / 2 + 1 : length;
    return Shape{(*x)[0], (signal - length) / step->front() + 1, bins, 2};
}

std::optional<std::vector<std::optional<Shape>>> Inference::shapes_of_rare(const onnx::NodeProto& node) const {
    const std::string& type = node.op_type();
    const std::optional<Shape> x = in(node, 0).dims;
    if (type == "Det") {
        if (!x || x->size() < 2) return Made{};
        return Made{without_last(*x, 2)};
    }
    if (type == "DFT") return Made{shape_of_fourier(node)};
    if (type == "STFT") return Made{shape_of_frames(node)};
    if (is_one_of(type, {"BlackmanWindow", "HannWindow", "HammingWindow"})) return Made{scalar_of(known(node, 0))};
    if (type == "MelWeightMatrix") {
        const auto bins = known(node, 0), length = known(node, 1);
        if (!bins || !length || bins->size() != 1 || length->size() != 1) return Made{};
        return Made{Shape{length->front() / 2 + 1, bins->front()}};
    }
    if (type == "Multinomial") {
        if (!x || x->size() != 2) return Made{};
        return Made{Shape{(*x)[0], integer(node, "sample_size", 1)}};
    }
    if (type == "DynamicQuantizeLinear") return Made{x, Shape{}, Shape{}};
    if (type == "Col2Im") {
        const auto image = known(node, 1), block = known(node, 2);
        if (!x || !image || !block) return Made{};
        return Made{image_of_columns(*x, *image, *block)};
    }
    if (type == "CenterCropPad") {
        const auto sizes = known(node, 1);
        auto axes = list(node, "axes");
        if (!x || !sizes) return Made{};
        Shape made = *x;
        for (std::size_t i = 0; i < sizes->size(); ++i) {
            const std::int64_t axis = axes && i < axes->size()
                                          ? positive_modulo((*axes)[i], static_cast<std::int64_t>(made.size()))
                                          : static_cast<std::int64_t>(i);
            if (axis < 0 || static_cast<std::size_t>(axis) >= made.size()) return Made{};
            made[static_cast<std::size_t>(axis)] = (*sizes)[i];
        }
        return Made{made};
    }
    if (type == "AffineGrid") {  // {N, C, (D,) H, W} -> {N, (D,) H, W, 2 or 3}
        const auto size = known(node, 1);
        if (!size || size->size() < 4) return Made{};
        Shape made{size->front()};
        made.insert(made.end(), size->begin() + 2, size->end());
        made.push_back(static_cast<std::int64_t>(size->size()) - 2);
        return Made{made};
    }
    if (type == "MaxUnpool") {
        if (given(node, 2)) return Made{known(node, 2)};
        const auto kernel = list(node, "kernel_shape"), strides = list(node, "strides"), pads = list(node, "pads");
        if (!x || !kernel || x->size() != kernel->size() + 2) return Made{};
        Shape made = *x;
        for (std::size_t i = 0; i < kernel->size(); ++i) {
            const std::int64_t stride = strides && i < strides->size() ? (*strides)[i] : 1;
            std::int64_t size = (made[i + 2] - 1) * stride + (*kernel)[i];
            if (pads && pads->size() == 2 * kernel->size()) size -= (*pads)[i] + (*pads)[i + kernel->size()];
            made[i + 2] = size;
        }
        return Made{made};
    }
    if (type == "DeformConv") return Made{shape_of_window(node, false)};
    if (type == "QLinearMatMul") {
        const auto& y = in(node, 3).dims;
        if (!x || !y || x->size() < 2 || y->size() < 2 || x->back() != (*y)[y->size() - 2]) return Made{};
        auto made = broadcast(without_last(*x, 2), without_last(*y, 2));
        if (made) made->insert(made->end(), {(*x)[x->size() - 2], y->back()});
        return Made{made};
    }
    if (type == "Attention") {  // rows: {N, queries, heads d}
        const std::int64_t heads = integer(node, "q_num_heads", 0), keys = integer(node, "kv_num_heads", 0);
        const auto& v = in(node, 2).dims;
        if (!x || !v || x->size() != 3 || v->size() != 3 || heads < 1 || keys < 1) return Made{x};
        return Made{Shape{(*x)[0], (*x)[1], v->back() / keys * heads}};
    }
    return std::nullopt;
}

}  // namespace rehearse::models
