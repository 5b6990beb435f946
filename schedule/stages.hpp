// SPDX-License-Identifier: Apache-2.0
// Pipeline stages: consecutive layers on each rank along an axis, and what they hand to each other.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "core/schedule.hpp"

namespace rehearse::schedule {

/// Where each stage ends (one past its last layer; the last is layers.size()), so that the costliest stage costs least:
/// exact, by dynamic programming. Each stage gets at least one layer of a cost above 0 where there are enough.
/// InputError when there are fewer such layers than stages.
std::vector<int> balance(std::span<const double> costs, int stages);
/// The same for stages on unlike devices: costs[s] are those of each layer on stage s.
std::vector<int> balance(std::span<const std::vector<double>> costs);

/// Layers [begin, end) of a stage's network.
struct Chunk {
    int begin = 0, end = 0;
};

struct Stage {
    Part part;
    std::vector<Chunk> chunks;
};

/// Cuts a part after `ends` (stages * chunks of them): piece c * stages + s is chunk c of stage s. Where a piece needs
/// what an earlier one made, it receives it from the piece before, which hands it on if need be.
std::vector<Stage> cut_stages(const Part& part, std::span<const int> ends, int stages, const std::string& axis_name);

}  // namespace rehearse::schedule
