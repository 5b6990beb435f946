// SPDX-License-Identifier: Apache-2.0
#include "run/placement.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/error.hpp"

namespace rehearse::run {

Placement::Placement(const kernels::Communicator& world) {
    // A host is known by the first of its ranks.
    const auto own = static_cast<double>(world.rank());
    const double first = world.node().all_gather({&own, 1}).front();
    for (const double node : world.all_gather({&first, 1})) node_of_.push_back(static_cast<std::int64_t>(node));
}

Group Placement::group(const std::vector<RankIndex>& ranks, const Algorithm& algorithm) const {
    const auto size = static_cast<std::int64_t>(ranks.size());
    if (algorithm.inside.empty()) return {size, size};
    const auto node = [&](std::size_t i) { return node_of_[static_cast<std::size_t>(ranks[i])]; };
    std::vector<std::int64_t> lengths{1};  // of runs of ranks on one host
    std::vector<std::int64_t> hosts{node(0)};
    for (std::size_t i = 1; i < ranks.size(); ++i) {
        if (node(i) == node(i - 1)) {
            ++lengths.back();
        } else {
            lengths.push_back(1);
            hosts.push_back(node(i));
        }
    }
    std::ranges::sort(hosts);
    const bool apart = std::ranges::adjacent_find(hosts) != hosts.end();
    if (apart || std::ranges::count(lengths, lengths.front()) != static_cast<std::ptrdiff_t>(lengths.size())) {
        throw InputError(
            fmt::format("all-reduce {} needs as many ranks on each host, numbered host after host: start "
                        "mpirun with --map-by slot and equal slots, or choose another all-reduce",
                        to_string(algorithm)));
    }
    return {size, lengths.front()};
}

}  // namespace rehearse::run
