// SPDX-License-Identifier: Apache-2.0
// Walks an ONNX graph in its order and builds our Network: constants become weights, arithmetic on shapes is done while
// shapes are inferred, the rest is translated operator by operator. Tensors are not read, only their sizes.
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <set>

#include "core/error.hpp"
#include "models/models.hpp"
#include "models/onnx/importer.hpp"

namespace rehearse::models {
namespace {

// Costed by its bytes: the shape is inferred, or said by the file.
std::string put_unknown(Import& import, const onnx::NodeProto& node) {
    if (node.output_size() == 0) return "it makes nothing";
    for (int i = 1; i < node.output_size(); ++i)
        if (import.graph.readers(node.output(i)) > 0) return "several of its outputs are read";
    const auto output = import.graph.sample(node.output(0));
    if (!output) return "the shape of what it makes cannot be inferred";
    Unknown op{.type = node.op_type(), .output = *output};
    std::vector<int> inputs;
    for (int i = 0; i < node.input_size(); ++i) {
        if (node.input(i).empty()) continue;
        const Value& value = import.graph.value(node.input(i));
        if (value.kind == Value::Kind::constant) {
            if (value.dims && floating(value.element)) op.weight_elements += elements(*value.dims);
        } else if (import.places.contains(node.input(i))) {
            inputs.push_back(import.source(node, i));
            op.input_elements += elements(import.builder.shape(inputs.back()));
        }
    }
    import.put(node, std::move(op), std::move(inputs));
    return "";
}

// What is made of constants, shapes and ids alone is no layer.
bool makes_a_layer(const OnnxGraph& graph, const onnx::NodeProto& node) {
    return node.output_size() == 0 || std::ranges::any_of(node.output(), [&](const std::string& output) {
               return !output.empty() && !graph.constant(output) && !graph.side(output);
           });
}

constexpr std::string_view refused[] = {"If",       "Loop",   "Scan",     "NonZero",
                                        "Compress", "Unique", "Optional", "NonMaxSuppression"};
constexpr std::string_view of_text[] = {"StringNormalizer", "TfIdfVectorizer", "RegexFullMatch",
                                        "StringConcat",     "StringSplit",     "ImageDecoder"};

void take_over(Import& import, const onnx::NodeProto& node) {
    if (std::ranges::find(of_text, node.op_type()) != std::end(of_text))
        import.graph.fail(node, "it works on text or encoded images, which no device of a training computes");
    for (const std::string& input : node.input()) {
        if (input.empty() || import.graph.value(input).kind != Value::Kind::unknown) continue;
        import.graph.fail(node, fmt::format("it reads '{}', which no node before it makes", input));
    }
    if (std::ranges::find(refused, node.op_type()) != std::end(refused) || node.op_type().starts_with("Sequence")) {
        if (!makes_a_layer(import.graph, node) ||
            import.graph.readers(node.output_size() > 0 ? node.output(0) : "") == 0)
            return;
        leave_out(import, node);
        return;
    }
    if (!makes_a_layer(import.graph, node)) {
        if (node.output_size() > 0 && import.graph.constant(node.output(0)) &&
            !import.graph.why_unknown(node).empty() && !import.graph.dims(node.output(0)))
            import.graph.fail(node, import.graph.why_unknown(node));
        return;
    }
    const Translate translate =
        node.domain().empty() || node.domain() == "ai.onnx" ? translation(node.op_type()) : nullptr;
    std::string why = translate == nullptr ? "the operator is unknown" : "";
    if (translate != nullptr) {
        const bool known =
            std::ranges::any_of(node.output(), [&](const auto& made) { return import.graph.sample(made).has_value(); });
        why = known ? "" : import.graph.why_unknown(node);
        for (const std::string& input : node.input())
            if (why.empty() && !input.empty() && !import.graph.dims(input)) {
                const onnx::NodeProto* maker = import.graph.value(input).maker;
                why = fmt::format("the shape of '{}' cannot be inferred{}", input,
                                  maker == nullptr ? "" : ", which " + describe(*maker) + " makes");
            }
        if (why.empty() && adds_losses(import, node)) return;
        if (why.empty()) why = translate(import, node);
    }
    if (why.empty()) return;
    if (!import.options.allow_unknown)
        import.graph.fail(node, why + "; --allow-unknown lets it in, costed by the bytes it touches");
    why = put_unknown(import, node);
    if (!why.empty()) import.graph.fail(node, "cannot be costed by its bytes either: " + why);
}

// The first node behind a value whose work depends on data; null: there is none.
const onnx::NodeProto* behind(const Import& import, const std::string& value) {
    std::vector<std::string> open{value};
    std::set<std::string> seen;
    while (!open.empty()) {
        const std::string name = std::move(open.back());
        open.pop_back();
        const onnx::NodeProto* const maker = import.graph.value(name).maker;
        if (maker == nullptr || !seen.insert(name).second) continue;
        if (std::ranges::find(refused, maker->op_type()) != std::end(refused)) return maker;
        open.insert(open.end(), maker->input().begin(), maker->input().end());
    }
    return nullptr;
}

// A network that ends in bare scores gets the loss too: of a vector, of pixels behind a softmax, of words.
void end_in_loss(Import& import, const std::string& output, bool first) {
    const auto last = import.places.find(output);
    if (last == import.places.end()) {
        if (!first || import.left_out.contains(output)) return;
        const onnx::NodeProto* const by_data = behind(import, output);
        if (by_data == nullptr) import.graph.fail(fmt::format("its output '{}' is not made by a layer", output));
        leave_out(import, *by_data);
        return;
    }
    Shape shape = import.graph.sample(output).value_or(import.builder.shape(last->second.layer));
    if (import.ends_in_softmax && first && elements(shape) == shape.front()) shape = {shape.front()};  // of one pixel
    if (shape.size() == 2 && shape.front() == 1 && !import.ids.empty()) shape = {shape[1]};            // of one token
    const bool words = shape.size() == 2 && !import.ids.empty();
    if (elements(shape) < 2 || (shape.size() != 1 && !words && !(import.ends_in_softmax && first))) return;
    const onnx::NodeProto nobody;
    const int from = import.layer_of(nobody, output, shape);
    const std::string name = first ? "loss" : fmt::format("loss.{}", output);
    if (shape.size() == 1) import.builder.layer(name, SoftmaxLoss{elements(shape)}, {from});
    if (words) import.builder.layer(name, SoftmaxLoss{.classes = shape[1], .rows = shape[0]}, {from});
    if (shape.size() != 1 && !words) import.builder.pixel_loss(from);
}

std::string stem(const std::string& path) {
    const std::string file = path.substr(path.find_last_of('/') + 1);
    return file.ends_with(".onnx") ? file.substr(0, file.size() - 5) : file;
}

// The table that integers pick from first: of a network that reads nothing else, its input is layer 0.
std::optional<Input> first_integers(const OnnxGraph& graph) {
    for (const onnx::NodeProto* node : graph.nodes()) {
        if (node->op_type() != "Gather" || node->input_size() < 2 || !graph.side(node->input(1))) continue;
        const auto sample = graph.sample(node->input(1));
        const auto table = graph.dims(node->input(0));
        if (sample && table && table->size() == 2) return Input{{elements(*sample)}, table->front()};
    }
    return std::nullopt;
}

// With as many samples as --sizes says all is one sample; else one alone can be counted.
void say_pairs(const OnnxGraph& graph, Import& import) {
    const onnx::NodeProto* node = graph.pairs_of();
    if (node == nullptr) return;
    if (graph.sized_batch()) import.mixed(*node, "it makes something of each pair of samples");
    ++import.notes[fmt::format(
        "{} makes something of each pair of samples, and a sample alone is counted; {}", describe(*node),
        graph.batch_word().empty()
            ? "export it with as many as belong together"
            : fmt::format("--sizes {}=SAMPLES takes as many as belong together for one", graph.batch_word()))];
}

Network import_graph(const std::string& path, OnnxGraph& graph, const ImportOptions& options) {
    std::vector<std::string> floats;
    for (const std::string& input : graph.inputs())
        if (graph.activation(input)) floats.push_back(input);
    for (const std::string& input : floats)
        if (!graph.sample(input)) graph.fail(fmt::format("input '{}' has an impossible size", input));
    const auto integers = first_integers(graph);
    if (floats.empty() && !integers) graph.fail("it reads no numbers, and no integers that pick rows of a table");
    Import import{graph, options,
                  NetworkBuilder(stem(path), floats.empty() ? *integers : Input{*graph.sample(floats.front())})};
    say_pairs(graph, import);
    for (std::size_t i = 0; i < floats.size(); ++i) {
        const int layer =
            i == 0 ? NetworkBuilder::input : import.builder.layer(floats[i], Input{*graph.sample(floats[i])}, {});
        import.places[floats[i]] = {layer, ""};
        if (i > 0) import.names[floats[i]] = 1;
    }
    Patterns patterns;
    find_normalizations(graph, patterns);
    find_functions(graph, patterns);
    find_attention(graph, patterns);
    find_rotary(graph, patterns);
    for (const onnx::NodeProto* node : graph.nodes()) {
        if (follows_from_data(import, *node) || patterns.inside.contains(node)) continue;
        const auto pattern = patterns.at.find(node);
        if (pattern != patterns.at.end()) {
            pattern->second(import);
        } else {
            take_over(import, *node);
        }
    }
    if (!ends_in_own_loss(import)) {
        for (const std::string& output : graph.outputs())
            end_in_loss(import, output, output == graph.outputs().front());
    }
    import.count_unseen();
    add_lost_biases(import);
    import.name_numbers();
    Network network = import.builder.build();
    say_what_was_seen(import, network);
    import.give(network, graph);
    return network;
}

bool reads_one_image(const OnnxGraph& graph) {
    const auto dims = graph.dims(graph.inputs().front());
    return dims && dims->size() == 3;
}

// In a file of fixed sizes the samples may lie in the second dimension (sequence first), be mixed, as in contrastive
// learning, or have no dimension, as a detector's image: then a sample is all that the file feeds in.
Network import_either_way(const std::string& path, const ImportOptions& options) {
    OnnxGraph graph(path, options);
    try {
        return import_graph(path, graph, options);
    } catch (const DependsOnData&) {
        throw;
    } catch (const InputError& error) {
        if (const auto batch = graph.batch_of_others(); batch && graph.open_batch()) {
            try {
                OnnxGraph otherwise(path, options, Samples::others);
                Network network = import_graph(path, otherwise, options);
                network.notes.push_back(
                    fmt::format("some inputs leave the number of samples open and the others have {}: a batch of {} is "
                                "read from the "
                                "file; export all of them with an open batch to be sure",
                                *batch, *batch));
                return network;
            } catch (const InputError&) {
                throw error;
            }
        }
        const bool mixed = dynamic_cast<const MixedSamples*>(&error) != nullptr;
        if (!mixed && (graph.open_batch() || !reads_one_image(graph))) throw;
        if (graph.open_batch() && !graph.sized_batch()) throw;
        for (const Samples samples : {Samples::second, Samples::none}) {
            if (samples == Samples::second && (graph.open_batch() || !mixed)) continue;
            try {
                OnnxGraph otherwise(path, options, samples);
                Network network = import_graph(path, otherwise, options);
                if (samples == Samples::none) {
                    network.notes.push_back(
                        "its samples cannot be told apart: one sample here is all that the file feeds in");
                }
                return network;
            } catch (const DependsOnData&) {
                throw;
            } catch (const InputError&) {
                if (!mixed) throw;  // of one image, and no samples: this is what is wrong with it
            }
        }
        throw;
    }
}

}  // namespace

// What an operator refuses of its own sizes does not know the file.
Network import_onnx(const std::string& path, const ImportOptions& options) {
    try {
        return import_either_way(path, options);
    } catch (const InputError& error) {
        if (std::string_view{error.what()}.starts_with(path)) throw;
        throw InputError(fmt::format("{}: {}", path, error.what()));
    }
}

}  // namespace rehearse::models
