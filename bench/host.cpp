// SPDX-License-Identifier: Apache-2.0
#include "bench/host.hpp"

#include <algorithm>
#include <cstring>
#include <vector>

#include "bench/compute.hpp"
#include "bench/loops.hpp"
#include "calibrate/fit.hpp"

namespace rehearse::bench {

namespace {

template <typename Q>
calibrate::Figure<Q> figure(const std::vector<double>& values) {
    const double median = calibrate::median(values);
    return {Q{median}, calibrate::robust_deviation(values) / median, static_cast<std::int64_t>(values.size())};
}

// Amount / seconds of each round.
std::vector<double> rates(double amount, std::vector<double> seconds) {
    for (double& value : seconds) value = amount / value;
    return seconds;
}

calibrate::Figure<Bandwidth> memory_bandwidth(const Rounds& rounds, const Team& team) {
    const Bytes share = last_level_cache() / static_cast<double>(team.ranks);
    const auto count = static_cast<std::size_t>(4 * share / size_of(DataType::f32));
    std::vector<float> a(count, 1), b(count, 2), c(count, 3);
    const Bytes array = static_cast<double>(count) * size_of(DataType::f32);
    const auto copy = [&] { std::memcpy(a.data(), b.data(), count * sizeof(float)); };
    const auto triad = [a = a.data(), b = b.data(), c = c.data(), count] {
        for (std::size_t i = 0; i < count; ++i) a[i] = b[i] + 0.5F * c[i];
    };
    const Times times = time({{.name = "stream:copy/cpu", .flops = {}, .bytes = 2 * array, .run = copy},
                              {.name = "stream:triad/cpu", .flops = {}, .bytes = 3 * array, .run = triad}},
                             rounds, team);
    const auto copied = figure<Bandwidth>(rates(2 * array.value, times.seconds[0]));
    const auto added = figure<Bandwidth>(rates(3 * array.value, times.seconds[1]));
    return copied.median > added.median ? copied : added;
}

Sample measure_one(const Op& op, std::int64_t batch, const Rounds& rounds, const Team& team) {
    Options options;
    options.rounds = rounds;
    options.team = team;
    return measure(std::vector<Problem>{{op, Pass::forward, batch}}, options).samples.front();
}

calibrate::Figure<FlopRate> peak(const Rounds& rounds, const Team& team) {
    constexpr std::int64_t turns = 100000;
    const FmaLoop loop = fma_loops().front();
    const Flops work = loop.flops * static_cast<double>(turns);
    const Times times =
        time({{.name = "peak:f32/cpu", .flops = work, .bytes = {}, .run = [&loop] { loop.run(turns); }}}, rounds, team);
    return figure<FlopRate>(rates(work.value, times.seconds[0]));
}

}  // namespace

calibrate::HostFigures measure_host(const Rounds& rounds, const Team& team) {
    const Rounds quarter{rounds.count, rounds.budget / 4};
    const Sample tiny = measure_one(Activation{Nonlinearity::relu, {1}}, 1, quarter, team);
    calibrate::HostFigures figures;
    figures.peak = peak(quarter, team);
    figures.launch = {tiny.median, tiny.error, tiny.count};
    figures.memory_bandwidth = memory_bandwidth(quarter, team);
    return figures;
}

}  // namespace rehearse::bench
