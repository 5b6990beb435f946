// SPDX-License-Identifier: Apache-2.0
// ONNX's Resize and Upsample of images and volumes.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "models/onnx/parts.hpp"
#include "models/onnx/resample.hpp"
#include "models/onnx/windows.hpp"

namespace rehearse::models {
namespace {

// Whether the file's scales are what its sizes come to; pixels are placed by the scales.
bool scaled_by_sizes(const std::vector<double>& scales, const Shape& from, const Shape& to) {
    constexpr double rounding = 1e-6;  // of a scale that is stored as f32
    for (std::size_t i = 0; i < scales.size(); ++i) {
        const double by_sizes = static_cast<double>(to[i]) / static_cast<double>(from[i]);
        if (std::abs(scales[i] - by_sizes) > rounding * by_sizes) return false;
    }
    return true;
}

// Whether ONNX's nearest pixels are ours: always when each pixel becomes a whole number of pixels, if only the
// rounding fits the coordinates.
bool nearest_is_ours(const onnx::NodeProto& node, const Shape& from, const Shape& to, bool old) {
    for (std::size_t i = 1; i < from.size(); ++i)
        if (to[i] % from[i] != 0) return false;
    const std::string where = old ? "asymmetric" : text(node, "coordinate_transformation_mode", "half_pixel");
    const std::string rounding = old ? "floor" : text(node, "nearest_mode", "round_prefer_floor");
    return where == "asymmetric" ? rounding == "floor" : where.ends_with("half_pixel") && rounding.starts_with("round");
}

// By what each axis of a sample grows; as many as the sample has, or nothing where that is not known.
std::vector<double> scales_of(const Import& import, const onnx::NodeProto& node, const Shape& shape, const Shape& to) {
    std::vector<double> scales;
    for (std::size_t i = 0; i < shape.size(); ++i)
        scales.push_back(static_cast<double>(to[i]) / static_cast<double>(shape[i]));
    const int at = node.op_type() == "Upsample" || import.graph.opset() < 11 ? 1 : 2;
    std::vector<double> said;
    for (const auto& attribute : node.attribute())
        if (attribute.name() == "scales") said.assign(attribute.floats().begin(), attribute.floats().end());
    if (at < node.input_size() && !node.input(at).empty() && import.graph.value(node.input(at)).data)
        said = *import.graph.value(node.input(at)).data;
    // Axes are counted from behind: before them is the batch, or a row that was put in.
    for (std::size_t i = 1; i < said.size() && i <= scales.size() && !has(node, "axes"); ++i) {
        const std::size_t axis = scales.size() - i;
        if (std::floor(said[said.size() - i] * static_cast<double>(shape[axis])) == static_cast<double>(to[axis]))
            scales[axis] = said[said.size() - i];
    }
    return scales;
}

// One product with a matrix for each axis that changes.
std::string by_matrices(Import& import, const onnx::NodeProto& node, int from, Shape shape, const Shape& to,
                        const Resampling& by) {
    const std::vector<double> scales = scales_of(import, node, shape, to);
    for (std::size_t axis = 0; axis < shape.size(); ++axis) {
        if (shape[axis] == to[axis]) continue;
        auto matrix = resampled(by, shape[axis], to[axis], scales[axis]);
        if (!matrix) return fmt::format("interpolation at {} coordinates has no kernel", by.coordinates);
        const int mixes =
            import.fixed_layer(node, fmt::format("axis{}", axis), {to[axis], shape[axis]}, *std::move(matrix));
        const auto split = static_cast<std::ptrdiff_t>(axis);
        const std::int64_t outer = elements(Shape(shape.begin(), shape.begin() + split));
        const std::int64_t inner = elements(Shape(shape.begin() + split + 1, shape.end()));
        const Shape seen{outer, shape[axis], inner};
        onnx::NodeProto named;
        named.set_name(fmt::format("{}.mixed{}", import.name_for(node), axis));
        const int view =
            import.builder.layer(import.name_for(named), Flatten{import.builder.shape(from), seen}, {from});
        from = import.builder.layer(
            import.name_for(named), BatchedMatMul{{1, to[axis], shape[axis]}, seen},
            {import.builder.layer(import.name_for(named), Flatten{{to[axis], shape[axis]}, {1, to[axis], shape[axis]}},
                                  {mixes}),
             view});
        shape[axis] = to[axis];
    }
    import.places[node.output(0)] = {from, ""};
    return "";
}

Resampling resampling_of(const onnx::NodeProto& node, const std::string& coordinates, bool old) {
    return {.mode = text(node, "mode", "nearest"),
            .coordinates = coordinates,
            .rounding = old ? "floor" : text(node, "nearest_mode", "round_prefer_floor"),
            .cubic = number(node, "cubic_coeff_a", -0.75),
            .outside_excluded = integer(node, "exclude_outside", 0) != 0};
}

}  // namespace

std::string resize(Import& import, const onnx::NodeProto& node) {
    const Shape shape = image(import, node);
    const int from = image_source(import, node, shape);
    Shape to = import.sample(node, node.output(0));
    const bool planes = several(import, node) && to.size() > 1;
    if (planes) std::swap(to[0], to[1]);
    if (to.size() == 2 && shape.size() == 3) to.insert(to.begin() + 1, 1);
    const auto seen_as_volume = [&] {
        import.places[node.output(0)].turned = planes;
        return std::string{};
    };
    const bool old = node.op_type() == "Upsample" || import.graph.opset() < 11;  // asymmetric coordinates
    const std::string where = old ? "asymmetric" : text(node, "coordinate_transformation_mode", "half_pixel");
    const bool filters = integer(node, "antialias", 0) != 0;
    if (to.size() != shape.size() || to[0] != shape[0]) {
        if (to.size() == shape.size() && import.graph.keeps_values() && !filters &&
            by_matrices(import, node, from, shape, to, resampling_of(node, where, old)).empty())
            return seen_as_volume();
        import.not_run(import.put(node, Rearrangement{"pack", {shape}, to}, {from}),
                       "it resizes other axes than an image's");
        return seen_as_volume();
    }
    if (to == shape) {
        import.alias(node, node.output(0), node.input(0));
        return "";
    }
    const std::string mode = text(node, "mode", "nearest");
    const bool linear = mode != "nearest";
    const bool ours = filters  ? false
                      : linear ? mode == "linear" && (where == "half_pixel" || where == "pytorch_half_pixel" ||
                                                      where == "align_corners")
                               : nearest_is_ours(node, shape, to, old);
    const bool exact = where == "align_corners" || scaled_by_sizes(scales_of(import, node, shape, to), shape, to);
    // Who runs it gets the file's own interpolation.
    if ((!ours || !exact) && !filters && import.graph.keeps_values() &&
        by_matrices(import, node, from, shape, to, resampling_of(node, where, old)).empty())
        return seen_as_volume();
    if (!ours)
        ++import.notes[fmt::format("interpolation of mode {} at {} coordinates is priced as ours (half_pixel)", mode,
                                   where)];
    const bool volume = shape.size() == 4;
    const std::size_t h = shape.size() - 2;
    const int layer =
        import.put(node,
                   Resize{linear ? Interpolation::linear : Interpolation::nearest, shape[0], shape[h], shape.back(),
                          to[h], to.back(), volume ? shape[1] : 0, volume ? to[1] : 0, where == "align_corners"},
                   {from});
    if (!ours)
        import.not_run(layer, fmt::format("interpolation of mode {} at {} coordinates{} has no kernel", mode, where,
                                          filters ? " with antialias" : ""));
    return seen_as_volume();
}

}  // namespace rehearse::models
