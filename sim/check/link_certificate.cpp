// SPDX-License-Identifier: Apache-2.0
#include "sim/check/link_certificate.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "sim/check/refuse.hpp"

namespace rehearse::sim {

void certify_links(const Timeline& timeline) {
    const Seconds whole = length(timeline);
    Bytes up, down;  // single links are of their kinds
    for (const LinkUse& use : timeline.links) {
        LinkUse busiest = use;
        busiest.links = 1;
        busiest.bytes = use.most;
        if (utilisation(busiest, whole) > 1 + rounding) {
            refuse(fmt::format("link {} carries {} in {}, more than {} allows", use.name, to_string(use.most),
                               to_string(whole), to_string(use.capacity)));
        }
        if (use.crossing == Crossing::into_fabric) up += use.bytes;
        if (use.crossing == Crossing::out_of_fabric) down += use.bytes;
    }
    if (std::max(up, down) - std::min(up, down) > rounding * up + Bytes{1}) {
        refuse(fmt::format("{} go into the fabric, {} come out", to_string(up), to_string(down)));
    }
}

}  // namespace rehearse::sim
