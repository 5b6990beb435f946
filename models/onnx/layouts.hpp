// SPDX-License-Identifier: Apache-2.0
// Where elements of a sample lie after nodes that only move them, or see them as other sizes.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "models/onnx/graph.hpp"

namespace rehearse::models {

/// Nodes that each read what the next one makes, back from `to` to `from`; those that neither transpose nor repeat
/// leave every element in its place.
struct Moves {
    std::string to, from;
    std::vector<const onnx::NodeProto*> nodes{};
};

/// Says whether the moves lay `count` elements out as asked for: element `to(i)` of a sample of what they make is
/// element `from(i)` of the same sample before them. Of many elements some thousand are looked at, spread over all.
bool lay_out(const OnnxGraph& graph, const Moves& moves, std::int64_t count,
             const std::function<std::int64_t(std::int64_t)>& to,
             const std::function<std::int64_t(std::int64_t)>& from);

}  // namespace rehearse::models
