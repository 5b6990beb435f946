// SPDX-License-Identifier: Apache-2.0
#include "study/ranks.hpp"

#include <algorithm>
#include <numeric>

#include "core/error.hpp"

namespace rehearse::study {

Division divided(std::span<const double> costs, std::int64_t ranks) {
    require(ranks > 0, "somebody trains");
    std::vector<std::size_t> order(costs.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::ranges::stable_sort(order, std::greater{}, [&](std::size_t i) { return costs[i]; });
    std::vector<double> loads(static_cast<std::size_t>(ranks));
    Division made{std::vector<std::int64_t>(costs.size())};
    for (const std::size_t turn : order) {
        const auto least = std::ranges::min_element(loads);
        *least += costs[turn];
        made.ranks[turn] = least - loads.begin();
    }
    made.longest = std::ranges::max(loads);
    return made;
}

}  // namespace rehearse::study
