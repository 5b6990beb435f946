// SPDX-License-Identifier: Apache-2.0
// Who makes and reads what in a graph, and what nobody reads.
#include <algorithm>

#include <fmt/format.h>

#include "models/onnx/graph.hpp"

namespace rehearse::models {

// Each value is made once (single static assignment, as ONNX's IR demands).
void OnnxGraph::check_names() const {
    std::unordered_set<std::string_view> made;
    for (const auto& tensor : model_.graph().initializer())
        if (!made.insert(tensor.name()).second) fail(fmt::format("two initializers are called '{}'", tensor.name()));
    for (const auto& input : model_.graph().input()) made.insert(input.name());  // an initializer may be one, too
    for (const onnx::NodeProto* node : nodes_) {
        for (const std::string& output : node->output())
            if (!output.empty() && !made.insert(output).second)
                fail(*node, fmt::format("'{}' is made already, by another node or as an input", output));
    }
}

// Drops nodes that nothing is computed with: exporters leave such behind of which only the sizes were asked.
void OnnxGraph::drop_unread() {
    const auto holds_graphs = [](const onnx::NodeProto* node) {
        return std::ranges::any_of(node->attribute(), [](const auto& each) { return each.has_g(); });
    };
    if (std::ranges::any_of(nodes_, holds_graphs)) return;  // these read by names that no input says
    std::unordered_set<std::string> wanted(outputs_.begin(), outputs_.end());
    std::vector<const onnx::NodeProto*> kept;
    for (std::size_t i = nodes_.size(); i-- > 0;) {
        const onnx::NodeProto& node = *nodes_[i];
        const bool unread =
            node.output_size() > 0 && std::ranges::all_of(node.output(), [&](const auto& output) {
                return !wanted.contains(output) && (output.empty() || (activation(output) && dims(output)));
            });
        if (unread) continue;
        kept.push_back(&node);
        if (node.op_type() != "Shape" && node.op_type() != "Size")
            wanted.insert(node.input().begin(), node.input().end());
    }
    nodes_.assign(kept.rbegin(), kept.rend());
}

void OnnxGraph::count_readers() {
    for (const onnx::NodeProto* node : nodes_) {
        for (const std::string& input : node->input()) readers_[input].push_back(node);
    }
    for (const std::string& output : outputs_) ++read_as_output_[output];
}

int OnnxGraph::readers(const std::string& name) const {
    const auto found = read_as_output_.find(name);
    return static_cast<int>(readers_of(name).size()) + (found == read_as_output_.end() ? 0 : found->second);
}

const std::vector<const onnx::NodeProto*>& OnnxGraph::readers_of(const std::string& name) const {
    static const std::vector<const onnx::NodeProto*> nobody;
    const auto found = readers_.find(name);
    return found == readers_.end() ? nobody : found->second;
}

}  // namespace rehearse::models
