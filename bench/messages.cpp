// SPDX-License-Identifier: Apache-2.0
#include "bench/messages.hpp"

#include <fmt/format.h>

#include <numeric>
#include <span>
#include <vector>

#include "calibrate/fit.hpp"
#include "core/error.hpp"
#include "kernels/comm/idle.hpp"
#include "kernels/comm/reduction.hpp"

namespace rehearse::bench {

namespace {

constexpr std::int64_t smallest = 2, largest = 4 << 20;  // floats of a message: 8 B to 16 MiB

// Only the last round of a ring all-reduce: a message of `count` floats out, one in, nothing added.
kernels::RankProgram one_round(const kernels::Communicator& communicator, std::int64_t count) {
    const Group group{communicator.size(), communicator.size()};
    const Collective ring = all_reduce({}, group, communicator.size() * count);
    kernels::RankProgram program(ring, communicator.rank());
    program.rounds.erase(program.rounds.begin(), program.rounds.end() - 1);
    return program;
}

// As kernels/comm adds: the sum lies in a gradient buffer, what came in has just been written.
calibrate::Figure<Bandwidth> reduce_rate(const Rounds& rounds, const Team& team) {
    constexpr std::size_t count = 1 << 18;
    std::vector<float> sum(count, 0), incoming(count, 1e-3F);
    const Bytes bytes = static_cast<double>(count) * size_of(DataType::f32);
    const auto arrive = [&incoming] {
        for (float& value : incoming) value = -value;
    };
    const auto add = [&sum, &incoming] {
        kernels::add(DataType::f32, std::as_writable_bytes(std::span{sum}).data(),
                     std::as_bytes(std::span{incoming}).data(), count);
    };
    const Flops flops{static_cast<double>(count)};
    const std::vector<Case> cases{
        {.name = "message:reduce1MiB/cpu", .flops = flops, .bytes = bytes, .before = arrive, .run = add}};
    std::vector<double> rates = time(cases, rounds, team).seconds.front();
    for (double& value : rates) value = bytes.value / value;
    const double median = calibrate::median(rates);
    return {Bandwidth{median}, calibrate::robust_deviation(rates) / median, static_cast<std::int64_t>(rates.size())};
}

}  // namespace

Team team_of(const kernels::Communicator& communicator) {
    Team team;
    team.rank = communicator.rank();
    team.ranks = communicator.size();
    team.barrier = [&communicator] { communicator.barrier(); };
    team.mean = [&communicator](double mine) {
        const std::vector<double> all = communicator.all_gather({&mine, 1});
        return std::accumulate(all.begin(), all.end(), 0.0) / static_cast<double>(all.size());
    };
    return team;
}

calibrate::Messages measure_messages(kernels::Communicator& communicator, const Rounds& rounds) {
    require(communicator.size() > 1, "messages need two ranks");
    const Team team = team_of(communicator);
    communicator.connect();  // as run does
    std::vector<float> data(static_cast<std::size_t>(communicator.size() * largest), 0.5F);
    std::vector<Case> cases;
    for (std::int64_t count = smallest; count <= largest; count *= 2) {
        const Bytes size = static_cast<double>(count) * size_of(DataType::f32);
        cases.push_back({.name = fmt::format("message:ring{}B/mpi", size.value),
                         .flops = {},
                         .bytes = size,
                         .run = [&communicator, &data, program = one_round(communicator, count)] {
                             communicator.all_reduce(program, data, kernels::attentive());  // as run waits
                         }});
    }
    const Times times = time(cases, rounds, team);
    calibrate::Messages messages;
    for (std::size_t i = 0; i < cases.size(); ++i) {
        for (const double seconds : times.seconds[i]) messages.samples.push_back({cases[i].bytes, Seconds{seconds}});
    }
    messages.reduce = reduce_rate({rounds.count, rounds.budget / 10}, team);
    return messages;
}

}  // namespace rehearse::bench
