// SPDX-License-Identifier: Apache-2.0
// What is known of a graph's values, and what is wrong with the graph in its user's words.
#include <algorithm>

#include <fmt/format.h>

#include "core/error.hpp"
#include "models/onnx/infer.hpp"

namespace rehearse::models {

const Value& OnnxGraph::value(const std::string& name) const {
    static const Value none;
    const auto found = values_.find(name);
    return found == values_.end() ? none : found->second;
}

std::optional<Shape> OnnxGraph::sample(const std::string& name) const {
    const Value& found = value(name);
    if (!found.dims) return std::nullopt;
    Shape shape = *found.dims;
    if (found.batch >= 0) {
        const auto axis = static_cast<std::size_t>(found.batch);
        if (shape[axis] % batch_ != 0) return shape;
        shape[axis] /= batch_;
        if (shape[axis] == 1) shape.erase(shape.begin() + found.batch);
    } else if (batch_ == 1 && samples_ != Samples::none && !shape.empty() && shape.front() == 1 &&
               found.kind == Value::Kind::activation) {
        shape.erase(shape.begin());
    }
    if (shape.empty()) shape.push_back(1);
    for (const std::int64_t size : shape)
        if (size < 1) return std::nullopt;
    return shape;
}

std::optional<double> OnnxGraph::scalar(const std::string& name) const {
    const Value& found = value(name);
    if (found.kind != Value::Kind::constant || !found.data || found.data->size() != 1) return std::nullopt;
    return found.data->front();
}

bool OnnxGraph::is_table(const std::string& tensor) const {
    return std::ranges::any_of(model_.graph().node(), [&](const auto& node) {
        return node.op_type() == "Gather" && node.input_size() > 0 && node.input(0) == tensor;
    });
}

bool OnnxGraph::uniform(const std::string& name) const {
    if (for_training_ || tells_copies_) return false;  // there each tensor has a name of its own
    const auto& data = value(name).data;
    return data && !data->empty() && std::ranges::all_of(*data, [&](double each) { return each == data->front(); });
}

std::optional<std::vector<std::int64_t>> OnnxGraph::numbers(const std::string& name) const {
    const Value& found = value(name);
    if (!found.data) return std::nullopt;
    std::vector<std::int64_t> values;
    for (const double each : *found.data) values.push_back(to_integer(each));
    return values;
}

std::string OnnxGraph::why_unknown(const onnx::NodeProto& node) const {
    const auto found = why_.find(&node);
    return found == why_.end() ? "" : found->second;
}

// The size that stands for an open batch is ours: who reads the message never wrote it.
void OnnxGraph::fail(std::string_view what) const {
    std::string shown(what);
    const std::string open = std::to_string(batch_);
    const auto digit = [&](std::size_t i) { return i < shown.size() && shown[i] >= '0' && shown[i] <= '9'; };
    bool seen = false;
    for (auto at = shown.find(open); open_batch_ && at != shown.npos; at = shown.find(open, at + 1)) {
        if (digit(at + open.size()) || (at > 0 && digit(at - 1))) continue;
        shown.replace(at, open.size(), "N");
        seen = true;
    }
    throw InputError(fmt::format("{}: {}{}", path_, shown, seen ? "; N: the samples, left open in the file" : ""));
}

void OnnxGraph::fail(const onnx::NodeProto& node, std::string_view what) const {
    fail(fmt::format("{}: {}", describe(node), what));
}

}  // namespace rehearse::models
