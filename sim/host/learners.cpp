// SPDX-License-Identifier: Apache-2.0
#include "sim/host/learners.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <queue>
#include <utility>
#include <vector>

#include "core/error.hpp"

namespace rehearse::sim {

double pace_of_learners(std::span<const double> paces, int each, bool first_idle) {
    require(!paces.empty() && each > 0, "some learners and some parts");
    for (const double pace : paces) {
        if (!(pace >= 1 && pace <= 1000)) throw InputError(fmt::format("a learner's pace {}: from 1 to 1000", pace));
    }
    if (!first_idle) return std::ranges::max(paces);
    using Idle = std::pair<double, std::size_t>;  // since when, who
    std::priority_queue<Idle, std::vector<Idle>, std::greater<>> idle;
    for (std::size_t i = 0; i < paces.size(); ++i) idle.emplace(0.0, i);
    double end = 0;
    for (std::size_t part = 0; part < paces.size() * static_cast<std::size_t>(each); ++part) {
        const auto [since, learner] = idle.top();
        idle.pop();
        end = std::max(end, since + paces[learner]);
        idle.emplace(since + paces[learner], learner);
    }
    return end / each;
}

}  // namespace rehearse::sim
