// SPDX-License-Identifier: Apache-2.0
#include "models/onnx/graph.hpp"

#include <algorithm>
#include <array>
#include <functional>
#include <ranges>

#include <fmt/format.h>
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <google/protobuf/stubs/logging.h>

#include "core/error.hpp"
#include "core/file.hpp"
#include "core/text.hpp"
#include "models/onnx/infer.hpp"

namespace rehearse::models {
namespace {

constexpr int deepest = 32;                    // functions in functions
constexpr std::size_t most_nodes = 200000;     // of a graph, functions put in
constexpr std::size_t most_bytes = 512 << 20;  // of the nodes that calls of functions make

using Rename = std::function<void(std::string*)>;

// Of a branch all values, its own too: a function is put in once a call.
// NOLINTNEXTLINE(misc-no-recursion): branches have branches, no deeper than protobuf reads
void rename_all(onnx::GraphProto& graph, const Rename& rename) {
    for (auto& tensor : *graph.mutable_initializer()) rename(tensor.mutable_name());
    for (auto& value : *graph.mutable_input()) rename(value.mutable_name());
    for (auto& value : *graph.mutable_output()) rename(value.mutable_name());
    for (auto& node : *graph.mutable_node()) {
        for (auto& value : *node.mutable_input()) rename(&value);
        for (auto& value : *node.mutable_output()) rename(&value);
        for (auto& attribute : *node.mutable_attribute())
            if (attribute.has_g()) rename_all(*attribute.mutable_g(), rename);
    }
}

}  // namespace

bool floating(int element) {
    return element == onnx::TensorProto::FLOAT || element == onnx::TensorProto::FLOAT16 ||
           element == onnx::TensorProto::BFLOAT16 || element == onnx::TensorProto::DOUBLE;
}

OnnxGraph::OnnxGraph(const std::string& path, const ImportOptions& options, Samples samples)
    : path_(path), keeps_values_(options.values), samples_(samples) {
    read();
    inline_functions();
    check_attributes();
    check_names();
    find_inputs(options);
    unfold_tensors();
    declare();
    infer();
    if (open_batch_) pairs_of_ = first_of_pairs();
    if (pairs_of_ != nullptr) {  // samples cannot be seen by the size: one sample a file then
        open_batch_ = false;
        for (const std::string& input : inputs_) {
            Value& value = given_[input];
            if (value.batch >= 0) (*value.dims)[static_cast<std::size_t>(value.batch)] = 1;
        }
        batch_ = 1;
        infer();
    }
    drop_unread();
    count_readers();
}

void OnnxGraph::read() {
    const std::string bytes = read_file(path_);
    if (bytes.empty()) fail("the file is empty");
    const google::protobuf::LogSilencer silence;  // protobuf reports to stderr by itself
    google::protobuf::io::ArrayInputStream stream(bytes.data(),
                                                  static_cast<int>(std::min<std::size_t>(bytes.size(), 0x7fffffff)));
    google::protobuf::io::CodedInputStream coded(&stream);
    coded.SetTotalBytesLimit(0x7fffffff);
    if (!model_.ParseFromCodedStream(&coded) || !coded.ConsumedEntireMessage())
        fail(fmt::format("not an ONNX file, or cut off ({} bytes)", bytes.size()));
    if (!model_.has_graph() || model_.graph().node_size() == 0) fail("not an ONNX file, or cut off: it has no graph");
    for (const auto& import : model_.opset_import()) {
        if (import.domain().empty() || import.domain() == "ai.onnx") opset_ = import.version();
    }
    if (opset_ < 1) fail("cut off, or not a network: it names no operator set (opset_import)");
    for (const auto& output : model_.graph().output()) outputs_.push_back(output.name());
    if (outputs_.empty()) fail("it has no output");
    stores_weights_ = std::ranges::any_of(model_.graph().initializer(), [](const auto& tensor) {
        return tensor.dims_size() > 1 && floating(tensor.data_type());
    });
    const bool folded = folds_weights();
    for (const auto& node : model_.graph().node())
        for_training_ = for_training_ || (trains(node) && !(folded && node.op_type() == "Dropout"));
    tells_copies_ = tells_copies();
    for (const auto& entry : model_.metadata_props()) {
        if (entry.key() == "rehearse.padding") {
            ++notes_[fmt::format("rows of padding are trained like all others, which PyTorch leaves as they are: {}",
                                 entry.value())];
        }
        if (entry.key() != "rehearse.buffers") continue;
        for_training_ = says_buffers_ = true;
        for (const std::string_view name : rehearse::split(entry.value(), ',')) buffers_.emplace(name);
    }
}

// Functions of the file, as PyTorch 2's exporter writes modules, are put where they are called.
void OnnxGraph::inline_functions() {
    for (const auto& node : model_.graph().node()) expand(node, 0);
}

// NOLINTNEXTLINE(misc-no-recursion): a function may call others
void OnnxGraph::expand(const onnx::NodeProto& node, int depth) {
    const auto& functions = model_.functions();
    const auto function = std::ranges::find_if(
        functions, [&](const auto& each) { return each.name() == node.op_type() && each.domain() == node.domain(); });
    if (nodes_.size() > most_nodes) fail(fmt::format("it has more than {} nodes", most_nodes));
    if (function == functions.end()) {
        nodes_.push_back(&node);
        return;
    }
    if (depth >= deepest) fail(node, "functions call each other too deep");
    const std::string inner =
        (node.name().empty() ? node.output_size() > 0 ? node.output(0) : node.op_type() : node.name()) + "/";
    std::unordered_map<std::string, std::string> renamed;
    for (int i = 0; i < function->input_size(); ++i)
        renamed[function->input(i)] = i < node.input_size() ? node.input(i) : "";
    for (int i = 0; i < function->output_size() && i < node.output_size(); ++i)
        renamed[function->output(i)] = node.output(i);
    const auto rename = [&](std::string* value) {
        if (value->empty()) return;
        const auto found = renamed.find(*value);
        *value = found != renamed.end() ? found->second : inner + *value;
    };
    for (const auto& original : function->node()) {
        onnx::NodeProto& copy = made_.emplace_back(original);
        copy.set_name(inner + (original.name().empty() ? original.op_type() : original.name()));
        for (auto& value : *copy.mutable_input()) rename(&value);
        for (auto& value : *copy.mutable_output()) rename(&value);
        for (int i = copy.attribute_size() - 1; i >= 0; --i) {
            auto& attribute = *copy.mutable_attribute(i);
            if (attribute.has_g()) rename_all(*attribute.mutable_g(), rename);
            if (attribute.ref_attr_name().empty()) continue;
            const auto given = std::ranges::find_if(
                node.attribute(), [&](const auto& each) { return each.name() == attribute.ref_attr_name(); });
            if (given == node.attribute().end()) {
                copy.mutable_attribute()->DeleteSubrange(i, 1);
                continue;
            }
            const std::string name = attribute.name();
            attribute = *given;
            attribute.set_name(name);
        }
        put_bytes_ += copy.ByteSizeLong();
        if (put_bytes_ > most_bytes || made_.size() > most_nodes)
            fail(node, fmt::format("calls of functions make more than {} nodes, or {} MiB of them", most_nodes,
                                   most_bytes >> 20));
        expand(copy, depth + 1);
    }
}

void OnnxGraph::declare() {
    for (const auto* list : {&model_.graph().value_info(), &model_.graph().output()}) {
        for (const auto& info : *list) {
            const auto& type = info.type().tensor_type();
            if (!type.has_shape()) continue;
            Value value{.element = type.elem_type()};
            value.dims.emplace();
            for (const auto& dim : type.shape().dim()) {
                const std::int64_t size = dim.has_dim_value() ? dim.dim_value() : value.dims->empty() ? batch_ : 0;
                if (size < 1) value.dims.reset();
                if (!value.dims) break;
                value.dims->push_back(size);
            }
            if (value.dims) declared_[info.name()] = value;
        }
    }
}

void OnnxGraph::infer() {
    values_ = given_;
    why_.clear();
    sequences_.clear();
    if (written_.empty()) written_ = nodes_;
    nodes_.clear();
    Inference inference{*this};
    std::vector<const onnx::NodeProto*> open(written_.rbegin(), written_.rend());
    while (!open.empty()) {
        const onnx::NodeProto* node = open.back();
        open.pop_back();
        if (node->op_type() == "If" && put_branch(*node, open)) continue;
        if (node->op_type() == "Loop" && put_bags(*node, open)) continue;
        if (node->op_type() == "Loop" && put_turns(*node, open)) continue;
        if (put_sequence(*node, open) || put_cast(*node, open) || put_unreduced(*node, open) || put_scaled(*node, open))
            continue;
        if (nodes_.size() > most_nodes) fail(fmt::format("it has more than {} nodes", most_nodes));
        inference.infer(*node);
        nodes_.push_back(node);
    }
}

// The first node that makes something of each pair of samples, as contrastive learning does.
const onnx::NodeProto* OnnxGraph::first_of_pairs() const {
    const auto of_pairs = [&](const std::string& name) {
        const Value& made = value(name);
        if (made.kind != Value::Kind::activation || !made.dims) return false;
        int found = 0;
        for (std::int64_t dim : *made.dims) {
            for (; dim > 0 && dim % batch_ == 0; dim /= batch_) ++found;
        }
        return found > 1;
    };
    const auto node = std::ranges::find_if(
        nodes_, [&](const onnx::NodeProto* each) { return std::ranges::any_of(each->output(), of_pairs); });
    return node == nodes_.end() ? nullptr : *node;
}

}  // namespace rehearse::models
