// SPDX-License-Identifier: Apache-2.0
// Constants that become layers: a tensor of the file beside each sample, and what is computed of such tensors alone
// (positions through a dense layer, a weight that is normalized, first states of zeros). A layer computes for each
// sample, so that a thing that is the same for all is computed as often as there are samples.
#include <algorithm>
#include <numeric>

#include <fmt/format.h>

#include "models/onnx/importer.hpp"

namespace rehearse::models {
namespace {

onnx::NodeProto called(const std::string& name) {
    onnx::NodeProto node;
    node.set_name(name);
    return node;
}

// Of sizes that hold all samples those of one.
Shape of_one(const OnnxGraph& graph, const Value& value) {
    Shape dims = value.dims.value_or(Shape{1});
    for (std::size_t i = 0; graph.open_batch() && i < dims.size(); ++i) {
        if (dims[i] <= 0 || dims[i] % graph.batch() != 0) continue;
        dims[i] /= graph.batch();
        if (dims[i] == 1) dims.erase(dims.begin() + static_cast<std::ptrdiff_t>(i));
        break;
    }
    return dims.empty() ? Shape{1} : dims;
}

}  // namespace

// All of the tensor, as it lies.
int Import::parameter(const std::string& tensor) {
    const auto known = places.find(tensor);
    if (known != places.end()) return known->second.layer;
    Shape dims = graph.dims(tensor).value_or(Shape{1});
    if (dims.empty()) dims = {1};
    onnx::NodeProto node = called(tensor);
    node.add_output(tensor);
    const bool owned = owners.contains(tensor) && !graph.uniform(tensor);
    const int made = builder.layer(name_for(node), Parameter{dims}, {});
    starts[made] = {{tensor}};
    if (owned) not_run(made, fmt::format("its weights '{}' are another layer's, too, in another form", tensor));
    owners.emplace(tensor, made);
    places[tensor] = {made, ""};
    return made;
}

int Import::moved_parameter(const onnx::NodeProto& reader, const std::string& name) {
    const Value& value = graph.value(name);
    const Shape dims = of_one(graph, value);
    // Of a tensor that is cut, each piece counts with who reads it.
    const std::string part = graph.keeps_values() ? "" : part_of(name, value.weights.front());
    if (!part.empty() && !places.contains(value.weights.front()) && !owners.contains(part)) {
        const int piece = builder.layer(name_for(called(name)), Parameter{dims}, {});
        owners.emplace(part, piece);
        places[name] = {piece, ""};
        return piece;
    }
    const int whole = parameter(value.weights.front());
    const bool turned = multiplies(reader) && dims.size() == 2 && dims != builder.shape(whole);
    if (!value.places && !turned && elements(dims) == elements(builder.shape(whole))) {
        places[name] = {whole, dims == builder.shape(whole) ? "" : name};  // as it lies, of other sizes perhaps
        return whole;
    }
    const int made =
        builder.layer(name_for(called(name)), Rearrangement{"pack", {builder.shape(whole)}, dims}, {whole});
    if (value.places && value.places->size() == elements(dims)) {
        given[made].places = {value.places->all()};
    } else if (graph.keeps_values()) {
        not_run(made, fmt::format("which elements of its weights '{}' takes is not known", name));
    }
    places[name] = {made, ""};
    return made;
}

// A table that nobody trains; of one that holds as much for every sample, what it holds for one.
int Import::fixed_constant(const onnx::NodeProto& reader, const std::string& name) {
    const Value& value = graph.value(name);
    auto beside = values_beside(reader, value);
    Shape shape = beside ? beside->shape : of_one(graph, value);
    std::vector<float> values = beside ? std::move(beside->values) : std::vector<float>{};
    if (values.empty() && value.data && static_cast<std::int64_t>(value.data->size()) == elements(shape))
        values.assign(value.data->begin(), value.data->end());
    const int made = fixed_layer(called(name), "values", shape, std::move(values));
    places[name] = {made, ""};
    return made;
}

// NOLINTNEXTLINE(misc-no-recursion): what is computed is computed from what is computed, no deeper than `deepest`
int Import::bring(const onnx::NodeProto& reader, const std::string& name) {
    const auto known = places.find(name);
    if (known != places.end()) return known->second.layer;
    constexpr int deepest = 200;
    const Value& value = graph.value(name);
    if (value.weights.empty()) return fixed_constant(reader, name);
    const bool known_moves = value.moved || !graph.keeps_values();
    if (!value.computed && value.weights.size() == 1 && known_moves) return moved_parameter(reader, name);
    if (!value.dims) graph.fail(reader, fmt::format("the shape of '{}' cannot be inferred", name));
    if (value.maker == nullptr) graph.fail(reader, fmt::format("its input '{}' is a constant", name));
    if (++brought > deepest) graph.fail(reader, fmt::format("'{}' is computed in too many steps", name));
    // What several read is a layer of its own before any of them takes it for its weights.
    const bool product = multiplies(*value.maker);
    for (const std::string& input : value.maker->input()) {
        const Value& behind = graph.value(input);
        if (!input.empty() && !behind.dims)
            graph.fail(*value.maker, fmt::format("the shape of '{}' cannot be inferred", input));
        const bool plain = !input.empty() && !behind.weights.empty() && !behind.computed;
        const bool shared = plain && std::ranges::any_of(graph.readers_of(behind.weights.front()),
                                                         [](const auto* node) { return !multiplies(*node); });
        if (plain && product && shared) bring(*value.maker, input);
        if (plain && !product && (graph.keeps_values() || graph.readers(behind.weights.front()) > 1))
            bring(reader, input);
    }
    const Translate translate = translation(value.maker->op_type());
    std::string why = translate == nullptr ? "the operator is unknown" : translate(*this, *value.maker);
    --brought;
    const auto made = places.find(name);
    if (made == places.end() && why.empty()) why = "it makes no layer";
    if (!why.empty()) graph.fail(*value.maker, fmt::format("{} (it computes weights)", why));
    return made->second.layer;
}

void Import::count_unseen() {
    std::vector<std::string> unseen;
    for (const auto& [layer, tensors] : starts) {
        if (builder.at(layer).weights_of >= 0) continue;
        for (const Start& start : tensors) {
            const Value& value = graph.value(start.value);
            if (!value.computed || !value.dims || value.weights.size() < 2) continue;
            // The layer itself is as large as one of them.
            const auto own = std::ranges::find_if(value.weights, [&](const std::string& each) {
                return elements(graph.dims(each).value_or(Shape{})) == elements(*value.dims);
            });
            if (own == value.weights.end()) continue;
            for (const std::string& each : value.weights)
                if (each != *own && owners[each] == layer) unseen.push_back(each);
        }
    }
    for (const std::string& tensor : unseen) {
        if (places.contains(tensor)) continue;
        owners.erase(tensor);
        parameter(tensor);
    }
    count_unread();
}

// Of tensors that are read in pieces alone, who prices a network also counts what no piece has: it has a gradient of 0,
// which is summed over ranks, and its place in the optimizer.
void Import::count_unread() {
    if (graph.keeps_values()) return;  // pieces are taken from all of it there
    std::map<std::string, std::int64_t> read;
    for (const auto& [name, layer] : owners) {
        const std::size_t cut = name.find('[');
        if (cut == std::string::npos || !name.ends_with(']')) continue;
        const std::string tensor = name.substr(0, cut), piece = name.substr(cut + 1, name.size() - cut - 2);
        if (graph.dims(tensor)) read[tensor] += elements(graph.dims(piece).value_or(Shape{}));
    }
    for (const auto& [tensor, count] : read) {
        const std::int64_t rest = elements(*graph.dims(tensor)) - count;
        if (rest > 0 && !owners.contains(tensor) && !graph.uniform(tensor))
            builder.layer(name_for(called(tensor + ".unread")), Parameter{{rest}}, {});
    }
}

}  // namespace rehearse::models
