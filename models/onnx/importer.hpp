// SPDX-License-Identifier: Apache-2.0
// The import under way, and the table of ONNX operators that become ours.
#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "models/builder.hpp"
#include "models/onnx/graph.hpp"

namespace rehearse::models {

struct Import {
    const OnnxGraph& graph;
    NetworkBuilder builder;
    std::unordered_map<std::string, int> layer_of;  // by the name of the value that the layer makes
    std::unordered_map<std::string, int> names;     // how often a layer's name was asked for
    bool ends_in_softmax = false;                   // left out: the loss takes its place

    /// The layer behind a node's input; InputError when nothing before the node makes it.
    int source(const onnx::NodeProto& node, int input) const;
    /// The sizes of a constant input; InputError when it is absent, not constant or of another rank.
    Shape weights(const onnx::NodeProto& node, int input, std::size_t rank) const;
    /// Adds a layer named after the node; InputError when libonnx infers another shape for it.
    void put(const onnx::NodeProto& node, Op op, std::vector<int> inputs);
    std::string name_for(const onnx::NodeProto& node);
};

/// Empty when the node was taken over; else why this form of the operator is unknown to us.
using Translate = std::string (*)(Import& import, const onnx::NodeProto& node);
/// Null for an operator that we do not know.
Translate translation(std::string_view op_type);

}  // namespace rehearse::models
