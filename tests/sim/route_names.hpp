// SPDX-License-Identifier: Apache-2.0
// Routes as the names of their links, and a fabric that tests of routes share.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/network/wiring.hpp"

namespace rehearse::sim::test {

inline std::vector<std::string> names(const Wiring& wiring, std::int64_t from, std::int64_t to) {
    std::vector<Hop> hops;
    wiring.route(from, to, hops);
    std::vector<std::string> result;
    for (const Hop& hop : hops) result.push_back(wiring.link(hop.link).name);
    return result;
}

// Without the links between device and NIC at both ends.
inline std::vector<std::string> between_nics(const Wiring& wiring, std::int64_t from, std::int64_t to) {
    std::vector<std::string> all = names(wiring, from, to);
    return {all.begin() + 2, all.end() - 2};
}

/// Its global links are four times as wide as its local ones.
inline Dragonfly dragonfly(std::int64_t groups, std::int64_t routers, std::int64_t nodes) {
    return {.groups = groups, .routers = routers, .nodes = nodes, .local = {5.0_GBps, ""}, .global = {20.0_GBps, ""}};
}

}  // namespace rehearse::sim::test
