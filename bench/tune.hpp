// SPDX-License-Identifier: Apache-2.0
// The fastest implementation of each problem, found by timing them all, the slow ones briefly.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "bench/team.hpp"
#include "bench/workload.hpp"
#include "calibrate/problems.hpp"
#include "core/progress.hpp"
#include "kernels/tuned/store.hpp"

namespace rehearse::bench {

struct TuneOptions {
    Seconds budget{30};  // of timing, all problems together; each implementation runs at least four times
    Bytes scratch_limit = kernels::default_scratch_limit;
    CacheState cache = CacheState::primed;
    std::uint64_t seed = 1;
    Team team;
    std::string date;                                // of the winners
    std::function<void(std::string_view)> say = {};  // about who is left out because its result is wrong
    Progress checking = {}, timing = {};  // of operators, and of what is decided together; either may end the work
};

/// The winner of each problem that has several implementations. Implementations take turns in rungs of equal time;
/// after each rung the slower half is out (successive halving: Karnin, Koren and Somekh 2013), and whoever takes twice
/// as long as the best at once. Before that each result is compared with the reference's, or with that of the untuned
/// choice where the reference would take seconds; who differs does not take part. Passes of an operator are decided one
/// by one, except where a backend keeps a workspace from forward to backward: then by the sum of their times. The same
/// on all ranks of the team, which end together: with the winners that are known by then. InputError as
/// kernels::choose.
std::vector<kernels::tuned::Winner> tune(const std::vector<calibrate::Needed>& needed, const TuneOptions& options);

}  // namespace rehearse::bench
