// SPDX-License-Identifier: Apache-2.0
// Times cases with Google Benchmark in several rounds over all of them, so that a disturbance of some seconds spoils
// one sample of many cases and not all samples of one: the median then leaves it out.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "bench/team.hpp"
#include "core/progress.hpp"
#include "core/units.hpp"

namespace rehearse::bench {

struct Case {
    std::string name;  // of the benchmark
    Flops flops;       // of one run
    Bytes bytes;
    std::function<void()> set_up = [] {};  // once a round, not timed
    std::function<void()> before = [] {};  // before each run, not timed
    std::function<void()> run;
};

struct Rounds {
    int count = 7;
    Seconds budget{10};  // of all cases and rounds together, set-up left out; a case runs 2 to 100 times a round
    std::int64_t iterations = 0;  // of each case a round, whatever the budget; 0: by the budget
    Progress progress = {};       // hears of each case of each round; may end the timing, for all ranks together
};

struct Times {
    // A case, a round: the median run's, mean over the ranks. Timing that was ended has fewer rounds of later cases.
    std::vector<std::vector<double>> seconds;
    std::string json;  // Google Benchmark's, of this rank
};

/// Of one case in one round, mean over the ranks.
struct Round {
    double median = 0;  // seconds of a run
    double whole = 0;   // of a run and what comes before it
};
/// One round: each case as many times as `iterations` says.
std::vector<Round> time_round(const std::vector<Case>& cases, const std::vector<std::int64_t>& iterations,
                              const Team& team);

Times time(const std::vector<Case>& cases, const Rounds& rounds, const Team& team);

}  // namespace rehearse::bench
