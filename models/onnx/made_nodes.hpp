// SPDX-License-Identifier: Apache-2.0
// Nodes that are put into a graph: for control flow that is known, and for what an export for inference folded.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "models/onnx/graph.hpp"

namespace rehearse::models {

inline onnx::NodeProto made_by(const char* type, const std::string& name, const std::vector<std::string>& inputs,
                               const std::string& output) {
    onnx::NodeProto node;
    node.set_op_type(type);
    node.set_name(name);
    for (const std::string& input : inputs) node.add_input(input);
    node.add_output(output);
    return node;
}

inline onnx::AttributeProto& attribute(onnx::NodeProto& node, const char* name,
                                       onnx::AttributeProto::AttributeType type) {
    auto& made = *node.add_attribute();
    made.set_name(name);
    made.set_type(type);
    return made;
}

inline onnx::NodeProto integers_as(const std::string& output, const std::vector<std::int64_t>& values) {
    onnx::NodeProto node = made_by("Constant", output, {}, output);
    auto& list = attribute(node, "value_ints", onnx::AttributeProto::INTS);
    for (const std::int64_t value : values) list.add_ints(value);
    return node;
}

inline onnx::NodeProto constant_node(const std::string& name, std::int64_t value, onnx::TensorProto::DataType type) {
    onnx::NodeProto node;
    node.set_op_type("Constant");
    node.add_output(name);
    auto& value_of = *node.add_attribute();
    value_of.set_name("value");
    value_of.set_type(onnx::AttributeProto::TENSOR);
    value_of.mutable_t()->set_data_type(type);
    if (type == onnx::TensorProto::INT64) value_of.mutable_t()->add_int64_data(value);
    if (type != onnx::TensorProto::INT64) value_of.mutable_t()->add_int32_data(static_cast<std::int32_t>(value));
    return node;
}

/// Whether a tensor shows nothing: its values are absent, or all the same.
inline bool uniform_or_absent(const Value& value) {
    return !value.data || value.data->empty() || !value.dims ||
           std::ranges::all_of(*value.data, [&](double each) { return each == value.data->front(); });
}

}  // namespace rehearse::models
