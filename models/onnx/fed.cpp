// SPDX-License-Identifier: Apache-2.0
// Integers that are fed in: ids that pick rows of tables, and masks and other numbers that are computed of them, which
// are layers that read them as numbers (exactly, to 2^24).
#include <algorithm>
#include <array>
#include <numeric>

#include <fmt/format.h>

#include "models/onnx/importer.hpp"

namespace rehearse::models {
namespace {

constexpr std::array<std::string_view, 6> seen_anew{"Cast", "Identity", "Reshape", "Flatten", "Squeeze", "Unsqueeze"};
constexpr std::array<std::string_view, 35> computed_of_ids{"Cast",
                                                           "Identity",
                                                           "Reshape",
                                                           "Flatten",
                                                           "Squeeze",
                                                           "Unsqueeze",
                                                           "Slice",
                                                           "Equal",
                                                           "Greater",
                                                           "Less",
                                                           "GreaterOrEqual",
                                                           "Not",
                                                           "LessOrEqual",
                                                           "And",
                                                           "Or",
                                                           "Xor",
                                                           "Where",
                                                           "Add",
                                                           "Sub",
                                                           "Mul",
                                                           "Neg",
                                                           "Div",
                                                           "Pow",
                                                           "Sqrt",
                                                           "Reciprocal",
                                                           "Exp",
                                                           "Clip",
                                                           "Max",
                                                           "Min",
                                                           "ReduceSum",
                                                           "Gather",
                                                           "ScatterElements",
                                                           "Expand",
                                                           "Transpose",
                                                           "Concat"};

bool among(std::string_view word, auto& words) { return std::ranges::find(words, word) != words.end(); }

// A slice along axes of the sample, applied to what was picked before it; nothing where its numbers are not known.
std::optional<std::vector<std::int32_t>> sliced(const OnnxGraph& graph, const onnx::NodeProto& node,
                                                std::vector<std::int32_t> places) {
    const auto numbers = [&](std::string_view attribute, int input) -> std::optional<std::vector<std::int64_t>> {
        if (auto given = list(node, attribute)) return given;
        return input < node.input_size() && !node.input(input).empty() ? graph.numbers(node.input(input))
                                                                       : std::nullopt;
    };
    const Value& value = graph.value(node.input(0));
    const auto from = graph.sample(node.input(0)), to = graph.sample(node.output(0));
    const auto starts = numbers("starts", 1), steps = numbers("steps", 4);
    auto axes = numbers("axes", 3);
    if (!starts || !from || !to || from->size() != to->size() || !value.dims) return std::nullopt;
    if (!axes) {
        axes.emplace(starts->size());
        std::iota(axes->begin(), axes->end(), 0);
    }
    Shape first(from->size(), 0), step(from->size(), 1);
    for (std::size_t i = 0; i < starts->size(); ++i) {
        const std::int64_t by = steps ? (*steps)[i] : 1;
        const auto axis = axis_of_sample(value, *from, (*axes)[i]);
        if (!axis && (*starts)[i] == 0 && by == 1) continue;
        if (!axis) return std::nullopt;
        const std::int64_t size = (*from)[*axis];
        first[*axis] = std::clamp<std::int64_t>((*starts)[i] + ((*starts)[i] < 0 ? size : 0), 0,
                                                std::max<std::int64_t>(0, size - 1));
        step[*axis] = by;
    }
    std::vector<std::int32_t> picked(static_cast<std::size_t>(elements(*to)));
    for (std::size_t i = 0; i < picked.size(); ++i) {
        std::int64_t rest = static_cast<std::int64_t>(i), place = 0, stride = 1;
        for (std::size_t d = to->size(); d-- > 0; stride *= (*from)[d]) {
            place += (first[d] + rest % (*to)[d] * step[d]) * stride;
            rest /= (*to)[d];
        }
        if (place < 0 || place >= elements(*from)) return std::nullopt;
        picked[i] = places.empty() ? static_cast<std::int32_t>(place) : places[static_cast<std::size_t>(place)];
    }
    return picked;
}

// ids[:, k]: rows of the sample by indices that are constants, applied to what was picked before it.
std::optional<std::vector<std::int32_t>> gathered(const OnnxGraph& graph, const onnx::NodeProto& node,
                                                  const std::vector<std::int32_t>& places) {
    const auto from = graph.sample(node.input(0)), to = graph.sample(node.output(0));
    const auto rows =
        node.input_size() > 1 && graph.constant(node.input(1)) ? graph.numbers(node.input(1)) : std::nullopt;
    if (!from || !to || !rows) return std::nullopt;
    const auto axis = axis_of_sample(graph.value(node.input(0)), *from, integer(node, "axis", 0));
    if (!axis) return std::nullopt;
    const std::int64_t size = (*from)[*axis],
                       inner = elements({from->begin() + static_cast<std::ptrdiff_t>(*axis) + 1, from->end()});
    std::vector<std::int32_t> picked;
    for (std::int64_t outer = 0; outer < elements(*from); outer += size * inner) {
        for (const std::int64_t row : *rows) {
            const std::int64_t at = row < 0 ? row + size : row;
            if (at < 0 || at >= size) return std::nullopt;
            for (std::int64_t i = 0; i < inner; ++i) {
                const std::int64_t place = outer + at * inner + i;
                picked.push_back(places.empty() ? static_cast<std::int32_t>(place)
                                                : places[static_cast<std::size_t>(place)]);
            }
        }
    }
    return static_cast<std::int64_t>(picked.size()) == elements(*to) ? std::optional(picked) : std::nullopt;
}

}  // namespace

// NOLINTNEXTLINE(misc-no-recursion): through the nodes that made the value, no deeper than `deepest`
std::optional<Picked> Import::picked_of(const std::string& name) const {
    const Value& value = graph.value(name);
    if (value.kind != Value::Kind::side) return std::nullopt;
    const auto sample = graph.sample(name);
    if (value.maker == nullptr) return sample ? std::optional{Picked{name}} : std::nullopt;
    const onnx::NodeProto& node = *value.maker;
    if (node.input_size() == 0 || !graph.side(node.input(0))) return std::nullopt;
    const bool view = among(node.op_type(), seen_anew);
    const bool gather = node.op_type() == "Gather";
    if (!view && !gather && node.op_type() != "Slice") return std::nullopt;
    const Value& before = graph.value(node.input(0));
    // Numbers that become truths, or integers of fractions, are computed.
    const bool truths = node.op_type() == "Cast" && value.element == onnx::TensorProto::BOOL &&
                        before.element != onnx::TensorProto::BOOL;
    if (truths) return std::nullopt;
    auto from = picked_of(node.input(0));
    const auto sample_before = graph.sample(node.input(0));
    if (!from || !sample || !sample_before) return std::nullopt;
    if (view) return elements(*sample) == elements(*sample_before) ? from : std::nullopt;
    const auto taken = gather ? gathered(graph, node, from->places) : sliced(graph, node, std::move(from->places));
    if (!taken) return std::nullopt;
    return Picked{from->input, *taken};
}

// NOLINTNEXTLINE(misc-no-recursion): as above
bool Import::can_be_fed(const std::string& name, int depth) const {
    constexpr int deepest = 64;
    const Value& value = graph.value(name);
    if (value.kind == Value::Kind::constant || places.contains(name)) return true;
    if (value.kind != Value::Kind::side || depth > deepest || !graph.sample(name)) return false;
    if (picked_of(name)) return true;
    if (value.maker == nullptr || !among(value.maker->op_type(), computed_of_ids)) return false;
    return std::ranges::all_of(value.maker->input(),
                               [&](const std::string& input) { return input.empty() || can_be_fed(input, depth + 1); });
}

void Import::feed(const onnx::NodeProto& reader, const std::string& name) {
    const Shape shape = sample(reader, name);
    const auto picked = picked_of(name);
    if (!picked && can_be_fed(name)) {
        const onnx::NodeProto& maker = *graph.value(name).maker;
        const Translate translate = translation(maker.op_type());
        const bool truths = maker.op_type() == "Cast" && graph.value(name).element == onnx::TensorProto::BOOL;
        if (truths) {  // whatever is not 0
            const int from = source(maker, 0);
            const int is_zero =
                put(maker, Elementwise{.function = "equal", .shape = shape, .inputs = {shape}, .numbers = {0}}, {from});
            put(maker, Elementwise{.function = "not", .shape = shape, .inputs = {shape}}, {is_zero});
        } else if (translate != nullptr && translate(*this, maker).empty() && places.contains(name)) {
            return;
        }
        if (places.contains(name)) return;
    }
    // The same integers that were read already, seen otherwise.
    for (const auto& [layer, input] : numbers) {
        const auto of_layer = given.find(layer);
        const auto taken = of_layer == given.end() || of_layer->second.places.empty() ? std::vector<std::int32_t>{}
                                                                                      : of_layer->second.places.front();
        if (!picked || input != picked->input || taken != picked->places ||
            elements(builder.shape(layer)) != elements(shape))
            continue;
        places[name] = {layer, ""};
        return;
    }
    onnx::NodeProto named;
    named.set_name(picked ? picked->input : name + ".input");
    const int made = builder.layer(name_for(named), Input{shape}, {});
    if (picked) numbers[made] = picked->input;
    if (picked && !picked->places.empty()) given[made].places = {picked->places};
    if (!picked) not_run(made, fmt::format("'{}' is computed of integers that are fed in", name));
    places[name] = {made, ""};
}

void Import::name_numbers() {
    for (const auto& [layer, input] : numbers) {
        const auto found = first_ids.find(input);
        if (found == first_ids.end()) continue;
        onnx::NodeProto named;
        given[layer].data_set = builder.at(found->second).name;
        named.set_name(given[layer].data_set + ".numbers");
        builder.at(layer).name = name_for(named);
    }
}

int Import::indices(const std::string& value, std::int64_t count, std::int64_t vocabulary) {
    const auto picked = picked_of(value);
    const std::string known = picked && picked->places.empty() ? picked->input : value;
    const auto found = ids.find(known);
    if (found != ids.end() && elements(builder.shape(found->second)) == count) {
        auto& input = std::get<Input>(builder.at(found->second).op);
        input.vocabulary = std::min(input.vocabulary, vocabulary);
        return found->second;
    }
    const auto* first = std::get_if<Input>(&builder.at(0).op);
    int made = 0;
    if (ids.empty() && first != nullptr && first->vocabulary > 0 && elements(first->shape) == count) {
        std::get<Input>(builder.at(0).op).vocabulary = std::min(first->vocabulary, vocabulary);
    } else {
        onnx::NodeProto named;
        named.set_name(picked ? picked->input : value + ".ids");
        made = builder.layer(name_for(named), Input{{count}, vocabulary}, {});
    }
    if (picked && !picked->places.empty()) given[made].places = {picked->places};
    if (!picked) not_run(made, fmt::format("'{}' is computed of integers that are fed in", value));
    if (picked) {
        const auto [first, fresh] = first_ids.try_emplace(picked->input, made);
        if (!fresh) given[made].data_set = builder.at(first->second).name;
    }
    ids[known] = made;
    return made;
}

}  // namespace rehearse::models
