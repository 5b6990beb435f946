// SPDX-License-Identifier: Apache-2.0
// Times problems on backends, as they behave inside a training step.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "bench/rounds.hpp"
#include "bench/team.hpp"
#include "bench/workload.hpp"
#include "calibrate/problems.hpp"
#include "calibrate/samples.hpp"
#include "core/op.hpp"

namespace rehearse::bench {

using calibrate::Sample;

struct Options {
    Rounds rounds;
    std::string backend, algorithm;  // empty: the best of each operator
    Bytes scratch_limit = kernels::default_scratch_limit;
    kernels::Choices tuned{};  // followed where no backend and no algorithm is asked for
    CacheState cache = CacheState::primed;
    std::uint64_t seed = 1;
    Team team;
};

struct Measurement {
    std::vector<Sample> samples;  // one a problem, in the given order; those that were not timed have a count of 0
    std::string json;             // Google Benchmark's
};

/// Buffers rotate over each problem's footprint, at most over twice the last-level cache. InputError when a problem has
/// no backend, or there is none to measure.
Measurement measure(const std::vector<calibrate::Needed>& needed, const Options& options);
/// As in a training step whose footprint is larger than any cache.
Measurement measure(const std::vector<Problem>& problems, const Options& options);

/// A problem on one implementation.
struct Candidate {
    calibrate::Needed needed;
    const kernels::Backend* backend = nullptr;
    int threads = 0;  // of the kernel; 0: as many as the caller has
};
/// One sample a candidate, in the given order; they take turns, so that their ratio holds on a noisy machine.
Measurement measure(const std::vector<Candidate>& candidates, const Options& options);

/// A problem as a case to be timed; `arena` and `workload` outlive it.
Case make_case(Workload& workload, const Problem& problem, Arena& arena, std::int64_t working_set);
/// Floats that buffers rotate over.
std::int64_t working_set(const calibrate::Needed& needed);

/// Of the last-level cache, as the operating system tells; 32 MiB where it does not.
Bytes last_level_cache();

}  // namespace rehearse::bench
