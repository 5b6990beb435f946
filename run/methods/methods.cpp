// SPDX-License-Identifier: Apache-2.0
// The table of methods. A new one is a file beside this one and its name here.
#include <algorithm>
#include <array>

#include "run/methods/method.hpp"

namespace rehearse::run {

extern const MethodRow synchronous, combined_updates, averaging, compression, sign_vote, servers, curvature, lag,
    bilevel, trust_ratios;

std::span<const MethodRow* const> methods() {
    // Of several that say what training means for one rank, the last one knows of the others.
    static constexpr std::array rows{&synchronous, &combined_updates, &averaging, &compression, &sign_vote,
                                     &servers,     &curvature,        &lag,       &bilevel,     &trust_ratios};
    return rows;
}

std::vector<const MethodRow*> methods_of(const Schedule& schedule) {
    std::vector<const MethodRow*> used;
    for (const MethodRow* row : methods()) {
        if (row->used(schedule)) used.push_back(row);
    }
    return used;
}

bool keeps_own_states(const Schedule& schedule) {
    return std::ranges::any_of(methods_of(schedule), [](const MethodRow* row) { return row->own_state; });
}

bool sums_gradients(const Schedule& schedule) {
    return std::ranges::all_of(methods_of(schedule), [](const MethodRow* row) { return row->sums_gradients; });
}

}  // namespace rehearse::run
