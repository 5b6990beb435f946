// SPDX-License-Identifier: Apache-2.0
// Walks an ONNX graph in its order and builds our Network: constants become weights, arithmetic on shapes is left to
// libonnx, the rest is translated operator by operator. Tensors are not read, only their sizes. A weight that several
// nodes share counts once a node: exporters share tensors that only happen to be equal.
#include <fmt/format.h>

#include "core/error.hpp"
#include "models/models.hpp"
#include "models/onnx/importer.hpp"

namespace rehearse::models {
namespace {

// Costed by its bytes: the shape is libonnx's.
std::string put_unknown(Import& import, const onnx::NodeProto& node) {
    if (node.output_size() == 0) return "it makes nothing";
    for (int i = 1; i < node.output_size(); ++i)
        if (import.graph.readers(node.output(i)) > 0) return "several of its outputs are read";
    const auto output = import.graph.sample(node.output(0));
    if (!output) return "libonnx cannot infer the shape of what it makes";
    Unknown op{.type = node.op_type(), .output = *output};
    std::vector<int> inputs;
    for (int i = 0; i < node.input_size(); ++i) {
        if (node.input(i).empty()) continue;
        if (import.graph.constant(node.input(i))) {
            const auto dims = import.graph.dims(node.input(i));
            if (dims && !import.graph.integral(node.input(i))) op.weight_elements += elements(*dims);
        } else if (!import.graph.integral(node.input(i))) {
            inputs.push_back(import.source(node, i));
            op.input_elements += elements(import.builder.shape(inputs.back()));
        }
    }
    import.put(node, std::move(op), std::move(inputs));
    return "";
}

bool only_shapes(const OnnxGraph& graph, const onnx::NodeProto& node) {
    for (const std::string& output : node.output())
        if (!graph.constant(output) && !graph.integral(output)) return false;
    return true;
}

void take_over(Import& import, const onnx::NodeProto& node, bool allow_unknown) {
    if (only_shapes(import.graph, node)) return;
    const Translate translate = translation(node.op_type());
    std::string why = translate == nullptr ? "the operator is unknown" : translate(import, node);
    if (why.empty()) return;
    if (!allow_unknown) import.graph.fail(node, why + "; --allow-unknown lets it in, costed by the bytes it touches");
    why = put_unknown(import, node);
    if (!why.empty()) import.graph.fail(node, "cannot be costed by its bytes either: " + why);
}

// A network that ends in bare scores gets the loss too.
void end_in_loss(Import& import) {
    const std::string& output = import.graph.output();
    const auto last = import.layer_of.find(output);
    if (last == import.layer_of.end()) import.graph.fail(fmt::format("its output '{}' is not made by a layer", output));
    const bool flat = import.builder.shape(last->second).size() == 1;
    if (flat) import.builder.loss(last->second);
    if (!flat && import.ends_in_softmax) import.builder.pixel_loss(last->second);
}

std::string stem(const std::string& path) {
    const std::string file = path.substr(path.find_last_of('/') + 1);
    return file.ends_with(".onnx") ? file.substr(0, file.size() - 5) : file;
}

}  // namespace

int Import::source(const onnx::NodeProto& node, int input) const {
    if (input >= node.input_size()) graph.fail(node, fmt::format("it has no input {}", input));
    const auto found = layer_of.find(node.input(input));
    if (found != layer_of.end()) return found->second;
    graph.fail(node, graph.constant(node.input(input))
                         ? fmt::format("its input '{}' is a constant", node.input(input))
                         : fmt::format("it reads '{}', which no node before it makes", node.input(input)));
}

Shape Import::weights(const onnx::NodeProto& node, int input, std::size_t rank) const {
    if (input >= node.input_size()) graph.fail(node, fmt::format("it has no input {}", input));
    const std::string& value = node.input(input);
    if (!graph.constant(value)) graph.fail(node, fmt::format("its weights '{}' are not constant", value));
    const auto dims = graph.dims(value);
    if (!dims || dims->size() != rank)
        graph.fail(node, fmt::format("its weights '{}' are {}, not a tensor of {} dimensions", value,
                                     dims ? to_string(*dims) : "of unknown size", rank));
    return *dims;
}

void Import::put(const onnx::NodeProto& node, Op op, std::vector<int> inputs) {
    int layer = 0;
    try {
        layer = builder.layer(name_for(node), std::move(op), std::move(inputs));
    } catch (const InputError& error) {
        graph.fail(node, error.what());
    }
    const auto expected = graph.sample(node.output(0));
    if (expected && *expected != builder.shape(layer))
        graph.fail(node, fmt::format("libonnx infers {}, we {}: a bug, or a network that mixes its samples",
                                     to_string(*expected), to_string(builder.shape(layer))));
    layer_of[node.output(0)] = layer;
}

std::string Import::name_for(const onnx::NodeProto& node) {
    std::string name = node.name().empty() ? node.output(0) : node.name();
    for (char& c : name)
        if (c == ':' || c == ',' || static_cast<unsigned char>(c) <= ' ') c = '_';  // a step is "layer:pass"
    const int before = names[name]++;
    return before == 0 && name != "input" && name != "loss" ? name : fmt::format("{}#{}", name, before + 1);
}

Network import_onnx(const std::string& path, bool allow_unknown) {
    const OnnxGraph graph(path);
    const auto shape = graph.sample(graph.input());
    Import import{graph, NetworkBuilder(stem(path), *shape), {{graph.input(), NetworkBuilder::input}}, {}, false};
    for (const auto& node : graph.graph().node()) take_over(import, node, allow_unknown);
    end_in_loss(import);
    return import.builder.build();
}

}  // namespace rehearse::models
