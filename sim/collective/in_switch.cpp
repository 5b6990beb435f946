// SPDX-License-Identifier: Apache-2.0
#include "sim/collective/in_switch.hpp"

#include <algorithm>

#include "sim/check/bounds.hpp"

namespace rehearse::sim {

Call InSwitch::rounds(Call call) const {
    if (across) call.algorithm = Algorithm{.name = "ring"};
    return call;
}

bool sum_between_nodes(const Groups& groups, const Wiring& wiring) {
    return !wiring.machine().fabric.sums.rate.source.empty() && groups.shape.size > 1 && groups.shape.per_node == 1;
}

std::optional<InSwitch> in_switch(const Call& call, const Groups& groups, const Wiring& wiring) {
    const std::int64_t n = groups.shape.size;
    if (call.kind != CollectiveKind::all_reduce || call.algorithm.name != "direct" || n < 2) return std::nullopt;
    if (sum_between_nodes(groups, wiring)) {
        const Machine& machine = wiring.machine();
        const SwitchSums& sums = machine.fabric.sums;
        const Bandwidth card = machine.fabric.link.value * machine.across.fraction.value;
        const double bytes = static_cast<double>(n) / static_cast<double>(2 * (n - 1));
        return InSwitch{.bytes = bytes * std::max(1.0, card / sums.rate.value),
                        .latency = sums.latency.value / static_cast<double>(2 * (n - 1)),
                        .across = true};
    }
    for (std::int64_t group = 0; group < groups.count; ++group) {
        if (wiring.across(groups.rank(group, 0), groups.rank(group, n - 1))) return std::nullopt;
    }
    const std::int64_t one = groups.rank(0, 0), other = groups.rank(0, 1);
    const SwitchSums& sums = wiring.switch_sums(one);
    if (sums.rate.source.empty()) return std::nullopt;
    const double shares = static_cast<double>(n + 1) / static_cast<double>(2 * (n - 1));
    return InSwitch{.bytes = shares * (wiring.nominal_rate_inside(one, other) / sums.rate.value),
                    .latency = sums.latency.value / 2.0};
}

Bytes least_sent(const Call& call, const Mesh& mesh, const Wiring& wiring) {
    const Bytes whole = size_of(call.type) * static_cast<double>(call.elements);
    const std::int64_t size = size_of(mesh, call.axis);
    const bool direct = call.algorithm.name == "direct";  // groups of many nodes take long to look at
    if (direct && in_switch(call, groups_along(mesh, call.axis, call.algorithm, wiring), wiring))
        return static_cast<double>(size) * whole;
    return least_crossing(call.kind, size, whole);
}

}  // namespace rehearse::sim
