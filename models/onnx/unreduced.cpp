// SPDX-License-Identifier: Apache-2.0
// A loss of each row of labels (reduction "none"), of which a program makes more than their mean, in the general form:
//
//   scores {N, C, ...} -- LogSoftmax -- GatherElements -- Squeeze -- Neg -- (Mul: the classes' weights) -- {N, ...}
//   labels {N, ...} ------ Unsqueeze ------/
#include "models/onnx/made_nodes.hpp"

namespace rehearse::models {

// False of any other node; a vector's one loss is ours as it is (losses.cpp).
bool OnnxGraph::put_unreduced(const onnx::NodeProto& node, std::vector<const onnx::NodeProto*>& open) {
    const bool scores = node.op_type() == "SoftmaxCrossEntropyLoss";
    if ((!scores && node.op_type() != "NegativeLogLikelihoodLoss") || text(node, "reduction", "mean") != "none" ||
        node.input_size() < 2 || node.output_size() < 1 || dims(node.input(0)).value_or(Shape{}).size() < 3)
        return false;
    const std::string &made = node.output(0), &name = node.name().empty() ? made : node.name();
    std::vector<onnx::NodeProto> nodes;
    const auto put = [&](const char* type, const char* what, const std::vector<std::string>& from) {
        nodes.push_back(made_by(type, name + what, from, made + what));
        return made + what;
    };
    std::string logs = node.input(0);
    if (scores) {
        logs = put("LogSoftmax", ".logs", {logs});
        attribute(nodes.back(), "axis", onnx::AttributeProto::INT).set_i(1);
        if (node.output_size() > 1 && !node.output(1).empty())
            nodes.push_back(made_by("Identity", name + ".given", {logs}, node.output(1)));
    }
    const std::string labels = put("Unsqueeze", ".labels", {node.input(1)});
    attribute(nodes.back(), "axes", onnx::AttributeProto::INTS).add_ints(1);
    const std::string picked = put("GatherElements", ".picked", {logs, labels});
    attribute(nodes.back(), "axis", onnx::AttributeProto::INT).set_i(1);
    const std::string rows = put("Squeeze", ".rows", {picked});
    attribute(nodes.back(), "axes", onnx::AttributeProto::INTS).add_ints(1);
    const bool weighted = node.input_size() > 2 && !node.input(2).empty();
    nodes.push_back(made_by("Neg", name, {rows}, weighted ? made + ".plain" : made));
    if (weighted) {
        const std::string weights = put("Gather", ".weights", {node.input(2), node.input(1)});
        nodes.push_back(made_by("Mul", name + ".weighted", {made + ".plain", weights}, made));
    }
    open_up(std::move(nodes), open);
    return true;
}

}  // namespace rehearse::models
