// SPDX-License-Identifier: Apache-2.0
// Flows of one size that do not start together on one link.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace rehearse::sim {

/// Egalitarian processor sharing: a link gives each of its flows an even share from the flow's start on.
class SharedLink {
public:
    /// Raises the `end` of each member flow to when the link lets it go, and `drained` to when it has let go of all.
    /// Nothing starts before the link is drained of earlier traffic. One flow by itself takes `alone`; n that start
    /// together end together after n x alone.
    void pass(std::span<const std::int32_t> members, std::span<const double> start, double alone, double& drained,
              std::span<double> end);

private:
    struct Arrival {
        double time = 0;
        std::int32_t flow = 0;
    };
    std::vector<Arrival> arrivals_;  // scratch
    std::vector<double> leaves_;     // on the link's own clock, which counts what each present flow has got
};

}  // namespace rehearse::sim
