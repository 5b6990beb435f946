// SPDX-License-Identifier: Apache-2.0
#include "models/onnx/parts.hpp"

#include <utility>

#include <fmt/format.h>

namespace rehearse::models {

int add_part(Import& import, const onnx::NodeProto& node, const std::string& what, Op op, std::vector<int> from) {
    onnx::NodeProto named;
    named.set_name(fmt::format("{}.{}", import.name_for(node), what));
    return import.builder.layer(import.name_for(named), std::move(op), std::move(from));
}

int seen_as(Import& import, const onnx::NodeProto& node, int from, const Shape& shape) {
    const Shape lies = import.builder.shape(from), seen = shape.empty() ? Shape{1} : shape;
    return lies == seen ? from
                        : add_part(import, node, "view", Flatten{lies, seen.size() == 1 ? Shape{} : seen}, {from});
}

}  // namespace rehearse::models
