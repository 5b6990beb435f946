// SPDX-License-Identifier: Apache-2.0
// Attributes of an ONNX node, with their defaults.
#include <algorithm>
#include <array>
#include <limits>

#include <fmt/format.h>

#include "models/onnx/graph.hpp"

namespace rehearse::models {
namespace {

constexpr std::int64_t largest = 1 << 20;  // of a window's sizes; what is beyond is a damaged file
constexpr std::int64_t largest_other = std::numeric_limits<std::int32_t>::max();  // so that two may be multiplied

// Whole numbers that are no counts of anything: places whose end is the largest number, values, sizes of tensors.
constexpr std::array<std::string_view, 8> any_size{"starts",       "ends",  "value_int", "value_ints",
                                                   "ignore_index", "shape", "split",     "output_shape"};

const onnx::AttributeProto* find(const onnx::NodeProto& node, std::string_view name) {
    for (const auto& attribute : node.attribute())
        if (attribute.name() == name) return &attribute;
    return nullptr;
}

}  // namespace

std::string describe(const onnx::NodeProto& node) {
    if (!node.name().empty()) return fmt::format("{} node '{}'", node.op_type(), node.name());
    return fmt::format("the {} node that makes '{}'", node.op_type(), node.output_size() > 0 ? node.output(0) : "");
}

bool has(const onnx::NodeProto& node, std::string_view attribute) { return find(node, attribute) != nullptr; }

std::int64_t integer(const onnx::NodeProto& node, std::string_view attribute, std::int64_t otherwise) {
    const auto* found = find(node, attribute);
    return found == nullptr ? otherwise : found->i();
}

double number(const onnx::NodeProto& node, std::string_view attribute, double otherwise) {
    const auto* found = find(node, attribute);
    return found == nullptr ? otherwise : found->f();
}

std::string text(const onnx::NodeProto& node, std::string_view attribute, std::string_view otherwise) {
    const auto* found = find(node, attribute);
    return found == nullptr ? std::string(otherwise) : found->s();
}

std::optional<std::vector<std::int64_t>> list(const onnx::NodeProto& node, std::string_view attribute) {
    const auto* found = find(node, attribute);
    if (found == nullptr) return std::nullopt;
    return std::vector<std::int64_t>(found->ints().begin(), found->ints().end());
}

const onnx::TensorProto* tensor(const onnx::NodeProto& node, std::string_view attribute) {
    const auto* found = find(node, attribute);
    return found == nullptr || !found->has_t() ? nullptr : &found->t();
}

std::vector<std::int64_t> OnnxGraph::integers(const onnx::NodeProto& node, std::string_view attribute, std::size_t size,
                                              std::int64_t otherwise) const {
    const auto* found = find(node, attribute);
    if (found == nullptr) return std::vector<std::int64_t>(size, otherwise);
    if (static_cast<std::size_t>(found->ints_size()) != size)
        fail(node, fmt::format("it has {} values in '{}', not {}", found->ints_size(), attribute, size));
    return {found->ints().begin(), found->ints().end()};
}

void OnnxGraph::check_attributes() const {
    for (const onnx::NodeProto* node : nodes_) check_attributes(*node);
}

void OnnxGraph::check_attributes(const onnx::NodeProto& node) const {
    const std::string& type = node.op_type();
    const bool alone =
        type == "Constant" || type == "RandomNormal" || type == "RandomUniform" || type.starts_with("Sequence");
    if (node.output_size() < 1) fail(node, "it makes nothing");
    if (node.input_size() < 1 && !alone && node.domain().empty()) fail(node, "it has no inputs");
    for (const std::string_view name : {"strides", "dilations", "kernel_shape", "group", "blocksize"}) {
        const auto* found = find(node, name);
        if (found == nullptr) continue;
        std::vector<std::int64_t> values(found->ints().begin(), found->ints().end());
        if (values.empty()) values.push_back(found->i());
        for (const std::int64_t value : values)
            if (value < 1 || value > largest) fail(node, fmt::format("'{}' of {} is impossible", name, value));
    }
    if (const auto* pads = find(node, "pads"))
        for (const std::int64_t value : pads->ints())
            if (value < -largest || value > largest) fail(node, fmt::format("'pads' of {} is impossible", value));
    if (!node.domain().empty() && node.domain() != "ai.onnx") return;
    for (const auto& attribute : node.attribute()) {
        if (std::ranges::find(any_size, attribute.name()) != any_size.end()) continue;
        std::vector<std::int64_t> values(attribute.ints().begin(), attribute.ints().end());
        values.push_back(attribute.i());
        for (const std::int64_t value : values)
            if (value < -largest_other || value > largest_other)
                fail(node, fmt::format("'{}' of {} is impossible", attribute.name(), value));
    }
}

}  // namespace rehearse::models
