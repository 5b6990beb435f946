// SPDX-License-Identifier: Apache-2.0
// Which trials a study trains next, round by round. Strategies are functions of what was found so far and of the seed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string_view>
#include <vector>

#include "study/space.hpp"

namespace rehearse::study {

inline constexpr double unknown = std::numeric_limits<double>::infinity();

struct Trial {
    Point point;
    int steps = 0;             // that it has trained
    double loss = unknown;     // at their end; infinite where it diverged
    int round = 0;             // that it was made in
    Point velocity{}, best{};  // of a particle, and the best point that it was at
    double best_loss = unknown;
};

/// A trial's training in a round, until it has so many steps: from new weights, its own, or another trial's.
struct Turn {
    static constexpr int new_weights = -1;
    int trial = 0, from = new_weights, until = 0;
    bool operator==(const Turn&) const = default;
};

struct Settings {
    int population = 8, rounds = 4, steps = 10;  // steps a round
    std::uint64_t seed = 1;
    std::vector<bool> fixed{};  // of each parameter: whether a trial that goes on from other weights keeps its value
};

/// The next round's turns, and the trials that it adds or moves; no turn: the study is over. Called with the losses of
/// all rounds before `round` in `trials`.
struct Strategy {
    std::string_view name, summary;
    bool continues;                            // whether trials go on from weights that were kept
    double (*most)(const Settings& settings);  // steps of the trial that is trained longest
    std::vector<Turn> (*next)(const Settings& settings, std::vector<Trial>& trials, int round);
};
/// random, halving, pbt, evolution, pso.
std::span<const Strategy> strategies();
/// InputError names those that there are.
const Strategy& strategy(std::string_view name);

}  // namespace rehearse::study
