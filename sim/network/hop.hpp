// SPDX-License-Identifier: Apache-2.0
// What routes are made of.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/timeline.hpp"
#include "core/units.hpp"

namespace rehearse::sim {

/// Seconds a byte: the inverse of a bandwidth.
using PerByte = Quantity<-1, 0, 1>;
constexpr PerByte inverse(Bandwidth bandwidth) { return PerByte{1 / bandwidth.value}; }

/// One directed link of a route.
struct Hop {
    std::int64_t link = 0;
    PerByte cost;  // of a flow that has the link for itself
};

/// A directed link, for people and for SimGrid.
struct Link {
    std::string name;  // "node0:link3:gpu0>gpu1", "node0:nic1:up", "switch1.0:up"
    std::string kind;  // "gpu>gpu", "nic:up", "switch1:up"
    Bandwidth bandwidth;
    Crossing crossing{};
};

}  // namespace rehearse::sim
