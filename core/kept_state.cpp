// SPDX-License-Identifier: Apache-2.0
#include "core/kept_state.hpp"

#include <algorithm>

#include "core/index.hpp"

namespace rehearse {

bool has_own(const Schedule& schedule, RankIndex rank, std::span<const Origin> origins) {
    if (origins.empty() || stage_of(schedule, rank).copy != 0) return false;
    const auto is_first = [&](int axis) { return axis < 0 || place_on(schedule.mesh, axis, rank) == 0; };
    const auto cut_along = [&](const Origin& origin, int axis) {
        return std::ranges::any_of(origin.cuts,
                                   [&](const Cut& cut) { return runs_along(schedule.mesh, cut.axis, axis); });
    };
    const int groups = axis_index(schedule.mesh, "groups"), data = axis_index(schedule.mesh, "data");
    if (is_first(groups) && is_first(data)) return true;
    return std::ranges::any_of(origins, [&](const Origin& origin) {
        return (is_first(groups) || cut_along(origin, groups)) && (is_first(data) || cut_along(origin, data));
    });
}

bool keeps_moments(const Schedule& schedule, int layer) {
    return std::ranges::none_of(schedule.classes, [&](const RankClass& rank_class) {
        const Part& part = rank_class.part;
        for (std::size_t i = 0; i < part.origins.size(); ++i) {
            if (part.origins[i].layer == layer && updates_directly(part.network.layers[i].op)) return true;
        }
        return false;
    });
}

std::int64_t kept_numbers(const Schedule& schedule) {
    const std::vector<Layer>& layers = schedule.network.layers;
    std::int64_t sum = 0;
    for (std::size_t i = 0; i < layers.size(); ++i) {
        if (layers[i].weights_of >= 0) continue;
        const int kept = keeps_moments(schedule, static_cast<int>(i)) ? moments(schedule.optimizer) : 0;
        sum += parameters(layers[i].op) * (1 + kept);
    }
    return sum;
}

}  // namespace rehearse
