// SPDX-License-Identifier: Apache-2.0
// What two networks have in common, layer by layer: a network of the zoo and one that was imported, or two imports.
#pragma once

#include <string>
#include <vector>

#include "core/network.hpp"

namespace rehearse::models {

/// Indices of layers; -1: the other network alone has one there.
struct Match {
    int a = -1, b = -1;
};

/// Every layer of both networks once, in their order. Layers of one operator (to_string(Op)) are matched so that as
/// many as possible are (their longest common subsequence); of those in between, layers of one kind are matched as
/// changed. Views of the same numbers (Flatten) compute nothing and are left out.
std::vector<Match> matched(const Network& a, const Network& b);

/// Of the same operator.
bool alike(const Network& a, const Network& b, const Match& match);

}  // namespace rehearse::models
