// SPDX-License-Identifier: Apache-2.0
// Nodes whose devices are joined without a switch.
#pragma once

#include <tuple>
#include <vector>

#include "fixture.hpp"

namespace rehearse::sim::test {

using Links = std::vector<std::tuple<int, int, double>>;  // two devices, GB/s

/// `links` of so many GB/s between two devices each; a switch joins devices and NICs of a node at 50 GB/s.
inline Machine mesh_of_links(std::int64_t nodes, int devices, const Links& links, int nics) {
    Machine machine = one_device_nodes(nodes, Star{});
    NodeKind& kind = machine.nodes[0];
    kind.vertices.clear();
    kind.links.clear();
    for (int d = 0; d < devices; ++d) kind.vertices.push_back({fmt::format("gpu{}", d), VertexKind::device, 0});
    for (int n = 0; n < nics; ++n) kind.vertices.push_back({fmt::format("nic{}", n), VertexKind::nic, -1});
    kind.vertices.push_back({"pcie", VertexKind::bridge, -1});
    for (int v = 0; v < devices + nics; ++v) kind.links.push_back(node_link(v, devices + nics, 50.0_GBps));
    for (const auto& [a, b, rate] : links) kind.links.push_back(node_link(a, b, Bandwidth{rate * 1e9}, 1_us));
    return machine;
}
inline Machine mesh_of_links(std::int64_t nodes, int devices, const Links& links) {
    return mesh_of_links(nodes, devices, links, devices);
}

inline Links all_pairs(int devices, double rate) {
    Links links;
    for (int b = 1; b < devices; ++b) {
        for (int a = 0; a < b; ++a) links.emplace_back(a, b, rate);
    }
    return links;
}

/// A DGX-1 with V100: one or two NVLinks of 25 GB/s between its GPUs.
inline Links cube_mesh() {
    return {{0, 1, 25}, {0, 2, 25}, {0, 3, 50}, {0, 4, 50}, {1, 2, 50}, {1, 3, 25}, {1, 5, 50}, {2, 3, 50},
            {2, 6, 25}, {3, 7, 25}, {4, 5, 25}, {4, 6, 25}, {4, 7, 50}, {5, 6, 50}, {5, 7, 25}, {6, 7, 50}};
}

}  // namespace rehearse::sim::test
