// SPDX-License-Identifier: Apache-2.0
#include "bench/compute.hpp"

#include <unistd.h>

#include <algorithm>
#include <memory>

#include "calibrate/fit.hpp"
#include "core/error.hpp"

namespace rehearse::bench {

Case make_case(Workload& workload, const Problem& problem, Arena& arena, std::int64_t working_set) {
    return {.name = workload.name(),
            .flops = flops(problem.op, problem.pass, problem.batch),
            .bytes = bytes_moved(problem.op, problem.pass, problem.type, problem.batch),
            .set_up = [&workload, &arena, working_set] { workload.set_up(arena, working_set); },
            .before = [&workload] { workload.before(); },
            .run = [&workload] { workload.run(); }};
}

std::int64_t working_set(const calibrate::Needed& needed) {
    return static_cast<std::int64_t>(std::min(needed.footprint, 2 * last_level_cache()) / size_of(DataType::f32));
}

Bytes last_level_cache() {
    const long level3 = sysconf(_SC_LEVEL3_CACHE_SIZE);
    return level3 > 0 ? Bytes{static_cast<double>(level3)} : Bytes{32.0 * 1048576};
}

Measurement measure(const std::vector<Candidate>& candidates, const Options& options) {
    if (candidates.empty()) throw InputError("there is no problem to measure");
    std::vector<std::unique_ptr<Workload>> workloads;
    std::vector<std::int64_t> rotating;
    std::int64_t floats = 0;
    for (const auto& [needed, backend, threads] : candidates) {
        workloads.push_back(std::make_unique<Workload>(needed.problem, kernels::Choice{backend, threads}, options.cache,
                                                       options.scratch_limit));
        rotating.push_back(working_set(needed));
        floats = std::max({floats, rotating.back(), workloads.back()->floats()});
    }
    Arena arena(floats, options.seed);
    std::vector<Case> cases;
    for (std::size_t i = 0; i < candidates.size(); ++i) {
        cases.push_back(make_case(*workloads[i], candidates[i].needed.problem, arena, rotating[i]));
    }
    Times times = time(cases, options.rounds, options.team);
    Measurement result{{}, std::move(times.json)};
    for (std::size_t i = 0; i < candidates.size(); ++i) {
        const auto& [needed, backend, threads] = candidates[i];
        if (times.seconds[i].empty()) {
            result.samples.push_back(
                {needed.problem, std::string{backend->name()}, std::string{backend->algorithm()}, {}});
            continue;
        }
        const double median = calibrate::median(times.seconds[i]);
        result.samples.push_back({needed.problem, std::string{backend->name()}, std::string{backend->algorithm()},
                                  Seconds{median}, calibrate::robust_deviation(times.seconds[i]) / median,
                                  static_cast<std::int64_t>(times.seconds[i].size())});
    }
    return result;
}

Measurement measure(const std::vector<calibrate::Needed>& needed, const Options& options) {
    const kernels::KernelSelection selection{options.backend, options.algorithm, options.scratch_limit, options.tuned};
    std::vector<Candidate> candidates;
    for (const calibrate::Needed& each : needed) {
        const auto& [op, pass, batch, type] = each.problem;
        const kernels::Choice choice = kernels::of(kernels::choose_passes(op, batch, type, selection), pass);
        candidates.push_back({each, choice.backend, choice.threads});
    }
    return measure(candidates, options);
}

Measurement measure(const std::vector<Problem>& problems, const Options& options) {
    std::vector<calibrate::Needed> needed;
    needed.reserve(problems.size());
    for (const Problem& problem : problems) needed.push_back({problem, 2 * last_level_cache()});
    return measure(needed, options);
}

}  // namespace rehearse::bench
