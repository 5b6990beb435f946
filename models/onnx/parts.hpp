// SPDX-License-Identifier: Apache-2.0
// Layers that together do what one node of a graph does.
#pragma once

#include <string>
#include <vector>

#include "models/onnx/importer.hpp"

namespace rehearse::models {

/// Adds a layer of what `node` does, named as the node with `what` behind a dot, and returns its number.
int add_part(Import& import, const onnx::NodeProto& node, const std::string& what, Op op, std::vector<int> from);

/// Returns the layer that has the values of `from` as `shape`, a number as one value: itself where it has that shape.
int seen_as(Import& import, const onnx::NodeProto& node, int from, const Shape& shape);

}  // namespace rehearse::models
