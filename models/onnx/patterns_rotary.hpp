// SPDX-License-Identifier: Apache-2.0
// Rotary embeddings as several nodes, found by their last one.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/rotary.hpp"
#include "models/onnx/importer.hpp"

namespace rehearse::models {

/// What is turned, the nodes that turn it (`last` among them), and the tables that these read: cosines, then sines.
struct Rotary {
    std::string from;
    const onnx::NodeProto* last = nullptr;
    std::vector<const onnx::NodeProto*> nodes{};
    std::vector<std::string> tables{};
    std::optional<Rotation> rotation{};  // nothing where its pairs are in another order: then it is priced
    bool rows_first = false;             // {rows, heads, size}, not {heads, rows, size}
};

/// The nodes that read a value, without those that ask for its sizes alone; nothing when the graph puts it out.
std::optional<std::vector<const onnx::NodeProto*>> computing_readers(const OnnxGraph& graph, const std::string& value);

/// Nothing when the sum is another one, or when a node outside reads what lies in between; for who runs the network,
/// also when the tables are not known.
std::optional<Rotary> rotary_at(const OnnxGraph& graph, const onnx::NodeProto& sum);

/// The layer that turns the rows of layer `from`.
int put_rotary(Import& import, const Rotary& rotary, int from);

}  // namespace rehearse::models
