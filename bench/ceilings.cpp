// SPDX-License-Identifier: Apache-2.0
#include "bench/ceilings.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "bench/thread_team.hpp"
#include "calibrate/fit.hpp"
#include "core/error.hpp"

namespace rehearse::bench {

namespace {

constexpr std::int64_t rounds_of_a_run = 100000;  // of 12 to 16 instructions: some 0.2 ms

}  // namespace

std::vector<Peak> measure_peaks(int threads, const Rounds& rounds) {
    ThreadTeam team(threads);
    std::vector<Peak> peaks;
    std::vector<Case> cases;
    for (const FmaLoop& loop : fma_loops()) {
        peaks.push_back({std::string{loop.type}, loop.how, threads, {}, 0, loop.absent});
        if (loop.run == nullptr) continue;
        cases.push_back({.name = fmt::format("peak:{}:t{}/cpu", loop.type, threads),
                         .flops = loop.flops * static_cast<double>(rounds_of_a_run * threads),
                         .bytes = {},
                         .run = [&team, run = loop.run] { team.run([run](int) { run(rounds_of_a_run); }); }});
    }
    const Times times = time(cases, rounds, {});
    std::size_t next = 0;
    for (Peak& peak : peaks) {
        if (!peak.absent.empty()) continue;
        const std::vector<double>& seconds = times.seconds[next];
        peak.rate = cases[next].flops / Seconds{*std::ranges::min_element(seconds)};
        peak.spread = calibrate::robust_deviation(seconds) / calibrate::median(seconds);
        ++next;
    }
    return peaks;
}

const Peak* Ceilings::peak(std::string_view type) const {
    const auto found = std::ranges::find(peaks, type, &Peak::type);
    return found != peaks.end() && found->absent.empty() ? &*found : nullptr;
}

const Peak& roof_of(const Ceilings& ceilings, const calibrate::Sample& sample) {
    const bool tf32 = sample.algorithm.starts_with("tensor-tf32") || sample.algorithm.starts_with("tf32-");
    const bool fp8 = sample.algorithm.starts_with("fp8");
    const Peak* peak = ceilings.peak(tf32 ? "tf32" : fp8 ? "fp8" : to_string(sample.problem.type));
    if (peak == nullptr) peak = ceilings.peak(to_string(sample.problem.type));
    if (peak == nullptr) peak = ceilings.peak("f32");
    require(peak != nullptr, "every CPU has f32");
    return *peak;
}

RooflinePoint roofline_point(const Ceilings& ceilings, const calibrate::Sample& sample) {
    const auto& [op, pass, batch, type] = sample.problem;
    const FlopRate peak = roof_of(ceilings, sample).rate;
    RooflinePoint point{.flops = flops(op, pass, batch), .bytes = bytes_moved(op, pass, type, batch)};
    point.of_peak = point.flops / sample.median / peak;
    point.of_memory = point.bytes / sample.median / ceilings.memory();
    point.memory_bound = point.bytes / ceilings.memory() > point.flops / peak;
    return point;
}

Ceilings measure_ceilings(int threads, const Rounds& rounds) {
    Ceilings ceilings;
    ceilings.peaks = measure_peaks(threads, {rounds.count, rounds.budget * 0.3});
    StreamOptions options;
    options.rounds = {rounds.count, rounds.budget * 0.7};
    options.threads = {threads};
    options.kernels = {StreamKernel::copy, StreamKernel::triad};
    options.memory_factor = 4.0 / 3;
    for (const StreamSample& sample : measure_streams(options).samples) {
        auto& roofs = ceilings.bandwidths;
        if (roofs.empty() || roofs.back().level != sample.level) roofs.push_back({sample.level, sample.rate});
        roofs.back().rate = std::max(roofs.back().rate, sample.rate);
    }
    return ceilings;
}

}  // namespace rehearse::bench
