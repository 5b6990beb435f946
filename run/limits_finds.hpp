// SPDX-License-Identifier: Apache-2.0
// How the rows of run/limits.hpp look at a schedule.
#pragma once

#include <algorithm>
#include <functional>
#include <string>
#include <string_view>

#include "core/schedule.hpp"

namespace rehearse::run {

inline std::string words(bool found, std::string_view text) { return found ? std::string{text} : std::string{}; }

/// The first text that is not empty of each layer of each rank class.
inline std::string of_layers(const Schedule& schedule,
                             const std::function<std::string(const Part& part, std::size_t layer)>& found) {
    for (const RankClass& rank_class : schedule.classes) {
        for (std::size_t i = 0; i < rank_class.part.network.layers.size(); ++i) {
            if (std::string text = found(rank_class.part, i); !text.empty()) return text;
        }
    }
    return {};
}

inline bool has_direct_updates(const Schedule& schedule) {
    return std::ranges::any_of(schedule.classes, [](const RankClass& rank_class) {
        return std::ranges::any_of(rank_class.part.network.layers,
                                   [](const Layer& layer) { return updates_directly(layer.op); });
    });
}

}  // namespace rehearse::run
