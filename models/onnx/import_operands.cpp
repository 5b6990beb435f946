// SPDX-License-Identifier: Apache-2.0
// Operands of a node of an import: what layers make, weights, constants, and the tensors that a layer has of the file.
#include <algorithm>
#include <iterator>
#include <numeric>

#include <fmt/format.h>

#include "models/onnx/importer.hpp"
#include "models/onnx/infer.hpp"
#include "models/onnx/infer_walk.hpp"

namespace rehearse::models {
namespace {

// Whether several nodes take a tensor, or one that cuts it.
bool in_parts(const OnnxGraph& graph, const std::string& tensor) {
    const auto& readers = graph.readers_of(tensor);
    return readers.size() > 1 || (readers.size() == 1 && readers.front()->op_type() == "Split");
}

// Whether something is computed of a tensor, or of what it is moved to, by nodes that read no samples.
// NOLINTNEXTLINE(misc-no-recursion): along a graph without cycles, no deeper than `most`
bool is_computed_with(const OnnxGraph& graph, const std::string& name, int depth = 0) {
    constexpr int most = 8;
    return depth < most && std::ranges::any_of(graph.readers_of(name), [&](const onnx::NodeProto* reader) {
               return std::ranges::any_of(reader->output(), [&](const std::string& made) {
                   const Value& value = graph.value(made);
                   if (value.kind != Value::Kind::constant || value.weights.empty()) return false;
                   return value.computed || is_computed_with(graph, made, depth + 1);
               });
           });
}

}  // namespace

// Whether a constant is a layer of its own: what products make of weights always, the rest for who runs it.
bool Import::is_computed(const std::string& name) const {
    const Value& value = graph.value(name);
    return value.kind == Value::Kind::constant && value.computed && (value.multiplied || graph.keeps_values());
}

// A tensor that training changes: where it broadcasts as it lies, or moved without loss, in the shape in which it is
// read; else as it is stored, and the layer is told which elements are meant.
void Import::take_weights(const onnx::NodeProto& node, const std::string& name, Operands& all) const {
    const Value& value = graph.value(name);
    const auto read = value.dims ? beside_samples(node, *value.dims) : std::nullopt;
    for (const std::string& tensor : value.weights) {
        const Shape dims = graph.dims(tensor).value_or(Shape{});
        const bool all_of_it = value.weights.size() == 1 && read && elements(*read) == elements(dims);
        const bool known = !graph.keeps_values() || (value.moved && read && value.weights.size() == 1);
        // Who runs it may train a part of a tensor here, others elsewhere: a part goes by its first element.
        const bool part = !all_of_it && graph.keeps_values() && known && value.places && value.places->size() > 0 &&
                          in_parts(graph, tensor);
        const std::string cut = graph.keeps_values() || value.weights.size() > 1 ? "" : part_of(name, tensor);
        bool each_once = all_of_it || part || (!cut.empty() && read && !value.computed);
        if (each_once && value.places) each_once = value.places->each_once();
        all.order += 'w';
        all.tensors.push_back(part && each_once           ? fmt::format("{}[{}]", tensor, value.places->all().front())
                              : cut.empty() || !each_once ? tensor
                                                          : cut);
        all.weights.push_back(each_once ? *read : dims.empty() ? Shape{1} : dims);
        all.start.push_back(each_once ? name : tensor);
        all.given.places.emplace_back();
        if (!known) all.given.not_run = fmt::format("'{}' is computed from weights: no kernel takes its slope", name);
        if (known && !each_once && graph.keeps_values()) {
            const Shape sample = *graph.sample(node.output(0));
            if (broadcast(*read, sample) != sample)
                graph.fail(node, fmt::format("'{}' of {} does not broadcast to {}", name, to_string(*read),
                                             to_string(sample)));
            all.given.places.back() = places_along(value, sample, steps_of(*read, sample));
        }
    }
}

void Import::take_constant(const onnx::NodeProto& node, const std::string& name, Operands& all) const {
    const Value& value = graph.value(name);
    const bool side = value.kind == Value::Kind::side;
    Shape dims = side ? sample(node, name) : value.dims.value_or(Shape{1});
    const auto read = beside_samples(node, dims);
    if (!side && read) dims = *read;
    auto known = side ? std::nullopt : values_beside(node, value);
    if (known) dims = known->shape;
    all.order += 'c';
    all.constants.push_back(dims.empty() ? Shape{1} : dims);
    all.given.fixed.emplace_back();
    if (known) all.given.fixed.back() = std::move(known->values);
    if (side) all.given.not_run = fmt::format("'{}' is made of integers that are fed in", name);
    if (graph.keeps_values() && !side && all.given.fixed.back().empty())
        all.given.not_run = fmt::format("what '{}' holds is not known", name);
}

Operands Import::operands(const onnx::NodeProto& node) {
    Operands all;
    bool first = true;
    for (int i = 0; i < node.input_size(); ++i) {
        const std::string& name = node.input(i);
        if (name.empty()) continue;
        const Value& value = graph.value(name);
        // A tensor of which more is computed is one layer for all who read it.
        const std::string tensor = value.weights.size() == 1 ? value.weights.front() : "";
        const bool shared = graph.keeps_values() && value.kind == Value::Kind::constant && !tensor.empty() &&
                            (places.contains(tensor) || (!owners.contains(tensor) && is_computed_with(graph, tensor)));
        if (is_computed(name) || shared) bring(node, name);
        const bool fed = value.kind == Value::Kind::side && (floating(value.element) || can_be_fed(name));
        const bool layer = places.contains(name) || fed;
        if (first) all.layer_first = layer;
        first = false;
        if (layer) {
            all.order += 'x';
            const Shape shape = sample(node, name);
            const auto beside = value.kind == Value::Kind::constant ? beside_samples(node, shape) : std::nullopt;
            all.layers.push_back(source(node, i, beside.value_or(shape)));
            all.inputs.push_back(builder.shape(all.layers.back()));
        } else if (const auto number = graph.scalar(name); number && value.weights.empty()) {
            all.order += 'n';
            all.numbers.push_back(*number);
        } else if (!value.weights.empty()) {
            take_weights(node, name, all);
        } else {
            take_constant(node, name, all);
        }
    }
    return all;
}

Shape Import::weights(const onnx::NodeProto& node, int input, std::size_t rank) const {
    if (input >= node.input_size()) graph.fail(node, fmt::format("it has no input {}", input));
    const std::string& value = node.input(input);
    if (!graph.constant(value)) graph.fail(node, fmt::format("its weights '{}' are not constant", value));
    const auto dims = graph.dims(value);
    if (!dims || dims->size() != rank)
        graph.fail(node, fmt::format("its weights '{}' are {}, not a tensor of {} dimensions", value,
                                     dims ? to_string(*dims) : "of unknown size", rank));
    if (elements(*dims) == 0) graph.fail(node, fmt::format("its weights '{}' are {}: none", value, to_string(*dims)));
    return *dims;
}

std::vector<std::string> Import::tensors_of(const std::string& value) const {
    const std::vector<std::string>& behind = graph.value(value).weights;
    const std::string part = behind.size() == 1 ? part_of(value, behind.front()) : "";
    return part.empty() ? behind : std::vector{part};
}

std::vector<std::string> Import::tensors(const onnx::NodeProto& node, int first, int last) const {
    std::vector<std::string> all;
    for (int i = first; i <= last && i < node.input_size(); ++i) {
        const std::vector<std::string> behind = tensors_of(node.input(i));
        all.insert(all.end(), behind.begin(), behind.end());
    }
    return all;
}

// The piece of a tensor that a value is, by the node that cut it off; empty where it is all of it, or more than moved.
std::string Import::part_of(const std::string& name, const std::string& tensor) const {
    const auto whole = graph.dims(tensor);
    const Value* value = &graph.value(name);
    if (!whole || !value->dims || value->computed || !in_parts(graph, tensor) ||
        elements(*value->dims) >= elements(*whole))
        return "";
    std::string part = name;
    for (int steps = 0; steps < 16 && value->maker != nullptr && value->maker->input_size() > 0; ++steps) {
        const std::string& before = value->maker->input(0);
        const auto dims = graph.dims(before);
        if (!dims || elements(*dims) != elements(*graph.dims(name))) break;
        part = before;
        value = &graph.value(before);
    }
    return fmt::format("{}[{}]", tensor, part);
}

}  // namespace rehearse::models
