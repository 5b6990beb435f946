// SPDX-License-Identifier: Apache-2.0
#include "sim/collective/in_switch.hpp"

#include <algorithm>

#include "sim/check/bounds.hpp"

namespace rehearse::sim {

std::optional<InSwitch> in_switch(const Call& call, const Groups& groups, const Wiring& wiring) {
    const std::int64_t n = groups.shape.size;
    if (call.kind != CollectiveKind::all_reduce || call.algorithm.name != "direct" || n < 2) return std::nullopt;
    for (std::int64_t group = 0; group < groups.count; ++group) {
        if (wiring.across(groups.rank(group, 0), groups.rank(group, n - 1))) return std::nullopt;
    }
    const std::int64_t one = groups.rank(0, 0), other = groups.rank(0, 1);
    const SwitchSums& sums = wiring.switch_sums(one);
    if (sums.rate.source.empty()) return std::nullopt;
    const double shares = static_cast<double>(n + 1) / static_cast<double>(2 * (n - 1));
    return InSwitch{shares * (wiring.nominal_rate_inside(one, other) / sums.rate.value), sums.latency.value / 2.0};
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
