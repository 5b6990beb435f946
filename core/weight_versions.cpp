// SPDX-License-Identifier: Apache-2.0
#include "core/weight_versions.hpp"

#include <algorithm>
#include <map>
#include <set>

namespace rehearse {

bool updates_each_micro_batch(const RankClass& rank_class) {
    std::set<int> updated;
    for (const Step& step : rank_class.steps) {
        const auto* update = std::get_if<Update>(&step.action);
        if (update != nullptr && !updated.insert(update->bucket).second) return true;
    }
    return false;
}

int weight_versions(const RankClass& rank_class) {
    if (!updates_each_micro_batch(rank_class)) return 1;
    std::map<int, int> steps_left;  // by micro-batch
    for (const Step& step : rank_class.steps) {
        if (const auto* compute = std::get_if<Compute>(&step.action)) ++steps_left[compute->micro_batch];
    }
    std::set<int> in_flight;
    std::size_t most = 1;
    for (const Step& step : rank_class.steps) {
        const auto* compute = std::get_if<Compute>(&step.action);
        if (compute == nullptr) continue;
        in_flight.insert(compute->micro_batch);
        most = std::max(most, in_flight.size());
        if (--steps_left[compute->micro_batch] == 0) in_flight.erase(compute->micro_batch);
    }
    return static_cast<int>(most);
}

}  // namespace rehearse
