// SPDX-License-Identifier: Apache-2.0
#include "sim/collective/in_switch.hpp"

#include <algorithm>

#include "sim/check/bounds.hpp"

namespace rehearse::sim {

Call InSwitch::rounds(Call call) const {
    if (lanes) {
        call.algorithm.across = "ring";
    } else if (across) {
        call.algorithm = Algorithm{.name = "ring"};
    }
    return call;
}

namespace {

bool has_summing_fabric(const Wiring& wiring) { return !wiring.machine().fabric.sums.rate.source.empty(); }

bool of_lanes(const Algorithm& algorithm) { return algorithm.name == "hierarchical" && algorithm.across == "direct"; }

/// Of n nodes, each of which gives what crosses it once.
InSwitch between_nodes(std::int64_t n, bool lanes, const Machine& machine) {
    const SwitchSums& sums = machine.fabric.sums;
    const Bandwidth card = machine.fabric.link.value * machine.across.fraction.value;
    const double bytes = static_cast<double>(n) / static_cast<double>(2 * (n - 1));
    return {.bytes = bytes * std::max(1.0, card / sums.rate.value),
            .latency = sums.latency.value / static_cast<double>(2 * (n - 1)),
            .across = true,
            .lanes = lanes};
}

}  // namespace

bool sum_between_nodes(const Groups& groups, const Wiring& wiring) {
    return has_summing_fabric(wiring) && groups.shape.size > 1 && groups.shape.per_node == 1;
}

bool may_sum_between_nodes(const Call& call, const Wiring& wiring) {
    return has_summing_fabric(wiring) && call.kind == CollectiveKind::all_reduce &&
           (call.algorithm.name == "direct" || of_lanes(call.algorithm));
}

std::optional<InSwitch> in_switch(const Call& call, const Groups& groups, const Wiring& wiring) {
    const std::int64_t n = groups.shape.size;
    if (call.kind != CollectiveKind::all_reduce || n < 2) return std::nullopt;
    const std::int64_t nodes = n / std::max<std::int64_t>(1, groups.shape.per_node);
    if (of_lanes(call.algorithm) && nodes > 1 && has_summing_fabric(wiring))
        return between_nodes(nodes, true, wiring.machine());
    if (call.algorithm.name != "direct") return std::nullopt;
    if (sum_between_nodes(groups, wiring)) return between_nodes(n, false, wiring.machine());
    for (std::int64_t group = 0; group < groups.count; ++group) {
        if (wiring.across(groups.rank(group, 0), groups.rank(group, n - 1))) return std::nullopt;
    }
    const std::int64_t one = groups.rank(0, 0), other = groups.rank(0, 1);
    const SwitchSums& sums = wiring.switch_sums(one);
    if (sums.rate.source.empty()) return std::nullopt;
    const double shares = static_cast<double>(n + 1) / static_cast<double>(2 * (n - 1));
    const double slower = std::max(1.0, wiring.nominal_rate_inside(one, other) / sums.rate.value);
    return InSwitch{.bytes = shares * slower, .latency = sums.latency.value / 2.0};
}

Bytes least_sent(const Call& call, const Mesh& mesh, const Wiring& wiring) {
    const Bytes whole = size_of(call.type) * static_cast<double>(call.elements);
    const std::int64_t size = size_of(mesh, call.axis);
    // Groups of many nodes take long to look at.
    const bool direct = call.algorithm.name == "direct" || of_lanes(call.algorithm);
    if (direct && in_switch(call, groups_along(mesh, call.axis, call.algorithm, wiring), wiring))
        return static_cast<double>(size) * whole;
    return least_crossing(call.kind, size, whole);
}

}  // namespace rehearse::sim
