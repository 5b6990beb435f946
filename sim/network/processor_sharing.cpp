// SPDX-License-Identifier: Apache-2.0
#include "sim/network/processor_sharing.hpp"

#include <algorithm>

namespace rehearse::sim {

void SharedLink::pass(std::span<const std::int32_t> members, std::span<const double> start, double alone,
                      double& drained, std::span<double> end) {
    const std::size_t count = members.size();
    if (count == 1) {
        const auto only = static_cast<std::size_t>(members[0]);
        drained = std::max(start[only], drained) + alone;
        end[only] = std::max(end[only], drained);
        return;
    }
    const auto comes = [&](std::int32_t flow) { return std::max(start[static_cast<std::size_t>(flow)], drained); };
    const double first = comes(members[0]);
    if (std::ranges::all_of(members, [&](std::int32_t flow) { return comes(flow) == first; })) {
        const double until = first + static_cast<double>(count) * alone;
        drained = until;
        for (const std::int32_t flow : members) {
            end[static_cast<std::size_t>(flow)] = std::max(end[static_cast<std::size_t>(flow)], until);
        }
        return;
    }
    arrivals_.resize(count);
    leaves_.resize(count);
    for (std::size_t i = 0; i < count; ++i) arrivals_[i] = {comes(members[i]), members[i]};
    std::ranges::sort(arrivals_, {}, &Arrival::time);
    double now = 0, got = 0;  // `got`: what a flow present from the beginning has got, in seconds of the whole link
    std::size_t come = 0, gone = 0;
    while (gone < count) {  // flows leave in the order in which they came: they are equal
        const auto present = static_cast<double>(come - gone);
        const double next_leaves = come > gone ? now + (leaves_[gone] - got) * present : 0;
        if (come < count && (come == gone || arrivals_[come].time < next_leaves)) {
            if (come > gone) got += (arrivals_[come].time - now) / present;
            now = arrivals_[come].time;
            leaves_[come++] = got + alone;
            continue;
        }
        now = next_leaves;
        got = leaves_[gone];
        double& last = end[static_cast<std::size_t>(arrivals_[gone++].flow)];
        last = std::max(last, now);
    }
    drained = now;
}

}  // namespace rehearse::sim
