// SPDX-License-Identifier: Apache-2.0
#include "sim/modes/alike.hpp"

#include <array>

#include "core/index.hpp"

namespace rehearse::sim {

namespace {

constexpr std::size_t passes = 4;  // Pass::forward to Pass::update

}  // namespace

std::vector<int> first_alike(const std::vector<Step>& steps) {
    static_assert(static_cast<std::size_t>(Pass::update) + 1 == passes);
    std::vector<int> first(steps.size(), -1);
    std::vector<std::array<int, passes>> last;  // of each layer and pass, 0 for what belongs to none
    for (std::size_t i = 0; i < steps.size(); ++i) {
        const Problem* problem = problem_of(steps[i]);
        if (problem == nullptr) continue;
        const auto* compute = std::get_if<Compute>(&steps[i].action);
        const std::size_t layer = compute == nullptr ? 0 : at(compute->layer + 1);
        if (layer >= last.size()) last.resize(layer + 1, {-1, -1, -1, -1});
        int& same = last[layer][static_cast<std::size_t>(problem->pass)];
        if (same < 0 || *problem_of(steps[at(same)]) != *problem) same = static_cast<int>(i);
        first[i] = same;
    }
    return first;
}

}  // namespace rehearse::sim
