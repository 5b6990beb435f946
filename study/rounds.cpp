// SPDX-License-Identifier: Apache-2.0
#include "study/rounds.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>

#include "core/index.hpp"

namespace rehearse::study {

namespace {

int steps_of(const Turn& turn, const std::vector<Trial>& trials) {
    return turn.from == Turn::new_weights ? turn.until : turn.until - trials[at(turn.from)].steps;
}

double longest(const std::vector<double>& seconds, const Division& division, std::int64_t ranks) {
    std::vector<double> sums(at(ranks));
    for (std::size_t i = 0; i < seconds.size(); ++i) sums[at(division.ranks[i])] += seconds[i];
    return std::ranges::max(sums);
}

}  // namespace

Outcome search(std::string_view name, const Settings& settings, std::int64_t ranks, const StepCost& cost,
               const Train& train) {
    using Clock = std::chrono::steady_clock;
    const Strategy& how = strategy(name);
    Outcome outcome;
    std::vector<Trial>& trials = outcome.trials;
    for (int round = 0;; ++round) {
        const std::vector<Turn> turns = how.next(settings, trials, round);
        if (turns.empty()) break;
        std::vector<double> costs;
        costs.reserve(turns.size());
        for (const Turn& turn : turns) costs.push_back(cost(trials[at(turn.trial)].point) * steps_of(turn, trials));
        const Division division = divided(costs, ranks);
        const Clock::time_point start = Clock::now();
        const Results results = train(trials, turns, division, round);
        const double took = std::chrono::duration<double>(Clock::now() - start).count();
        for (std::size_t i = 0; i < turns.size(); ++i) {
            Trial& trial = trials[at(turns[i].trial)];
            trial.steps = turns[i].until;
            trial.loss = std::isfinite(results.losses[i]) ? results.losses[i] : unknown;
        }
        Round& made = outcome.rounds.emplace_back();
        made = {turns.size(), std::min<std::int64_t>(ranks, std::ssize(turns)), division.longest};
        if (results.seconds.empty()) continue;
        made.trained_s = longest(results.seconds, division, ranks);
        made.measured_s = took;
    }
    return outcome;
}

}  // namespace rehearse::study
