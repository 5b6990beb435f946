// SPDX-License-Identifier: Apache-2.0
#include "sim/network/placement.hpp"

#include <algorithm>
#include <numeric>
#include <random>

namespace rehearse::sim {

std::string_view to_string(Placement placement) {
    switch (placement) {
        case Placement::contiguous:
            return "contiguous";
        case Placement::random:
            return "random";
        case Placement::scattered:
            return "scattered";
    }
    return "?";
}

std::vector<std::int64_t> placed_nodes(Placement placement, const Machine& machine, std::int64_t devices,
                                       std::uint64_t seed) {
    const std::int64_t all = node_count(machine);
    const std::int64_t used = devices >= device_count(machine) ? all : locate(machine, devices - 1).node + 1;
    if (placement == Placement::contiguous || (placement == Placement::scattered && used == all)) return {};
    std::vector<std::int64_t> nodes(static_cast<std::size_t>(placement == Placement::random ? all : used));
    std::iota(nodes.begin(), nodes.end(), std::int64_t{0});
    if (placement == Placement::scattered) {
        for (std::int64_t& node : nodes) node = node * all / used;
        return nodes;
    }
    // Fisher and Yates; std::shuffle gives other orders on other libraries.
    std::mt19937_64 dice{seed};
    for (std::size_t i = 0; i < static_cast<std::size_t>(used); ++i) {
        std::swap(nodes[i], nodes[i + dice() % (nodes.size() - i)]);
    }
    nodes.resize(static_cast<std::size_t>(used));
    return nodes;
}

}  // namespace rehearse::sim
