// SPDX-License-Identifier: Apache-2.0
// Attributes of an ONNX node, with their defaults.
#include <fmt/format.h>

#include "core/error.hpp"
#include "models/onnx_graph.hpp"

namespace rehearse::models {
namespace {

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

std::vector<std::int64_t> integers(const onnx::NodeProto& node, std::string_view attribute, std::size_t size,
                                   std::int64_t otherwise) {
    const auto* found = find(node, attribute);
    if (found == nullptr) return std::vector<std::int64_t>(size, otherwise);
    if (static_cast<std::size_t>(found->ints_size()) != size)
        throw InputError(
            fmt::format("{}: it has {} values in '{}', not {}", describe(node), found->ints_size(), attribute, size));
    return {found->ints().begin(), found->ints().end()};
}

}  // namespace rehearse::models
