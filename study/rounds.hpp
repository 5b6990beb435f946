// SPDX-License-Identifier: Apache-2.0
// A study round by round: which trials, on which ranks, how good they were and what they took.
#pragma once

#include <functional>
#include <string_view>
#include <vector>

#include "study/ranks.hpp"
#include "study/strategies.hpp"

namespace rehearse::study {

/// Of each of a round's turns its loss, and the seconds of its training steps; no seconds where nothing was trained.
struct Results {
    std::vector<double> losses, seconds;
};

/// What a round took: the cost of the rank that has most, and what was measured (-1: nothing was trained).
struct Round {
    std::size_t trials = 0;
    std::int64_t ranks = 0;
    double cost = 0;
    double trained_s = -1, measured_s = -1;  // in steps alone, of the slowest rank; with beginnings and checkpoints
};

struct Outcome {
    std::vector<Trial> trials;
    std::vector<Round> rounds;
};

/// Trains the turns as they are divided among ranks, or says what training might have given.
using Train = std::function<Results(const std::vector<Trial>& trials, const std::vector<Turn>& turns,
                                    const Division& division, int round)>;
/// Of one training step at a point, in any unit.
using StepCost = std::function<double(const Point& point)>;

/// All rounds of the strategy; InputError where none has its name. Every rank that calls it with the same losses finds
/// the same.
Outcome search(std::string_view strategy, const Settings& settings, std::int64_t ranks, const StepCost& cost,
               const Train& train);

}  // namespace rehearse::study
