// SPDX-License-Identifier: Apache-2.0
#include "bench/messages.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <numeric>
#include <span>
#include <vector>

#include "bench/overlap.hpp"
#include "calibrate/fit.hpp"
#include "core/error.hpp"
#include "kernels/comm/idle.hpp"

namespace rehearse::bench {

namespace {

constexpr std::int64_t smallest = 2, largest = 4 << 20;  // floats of a message: 8 B to 16 MiB

// Floats of the largest message: each runs twice a round at least, and once more to begin with, and half of all the
// time goes into the largest.
std::int64_t most_within(Seconds budget, kernels::Communicator& communicator, const Team& team) {
    constexpr std::int64_t tried = 1 << 16;
    std::vector<float> data(static_cast<std::size_t>(communicator.size() * tried), 0.5F);
    const kernels::RankProgram program = ring_round(communicator, tried);
    double seconds = 0;
    for (int i = 0; i < 3; ++i) {  // the last one counts
        team.barrier();
        const auto start = std::chrono::steady_clock::now();
        communicator.all_reduce(program, data, kernels::attentive());
        seconds = team.mean(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
    }
    std::int64_t most = largest;
    while (most > 1 << 18 && 2 * 16 * seconds * static_cast<double>(most) / tried > budget.value) most /= 2;
    return most;
}

Case round_of(kernels::Communicator& communicator, std::span<float> data, std::int64_t count, bool adds) {
    const Bytes size = static_cast<double>(count) * size_of(DataType::f32);
    return {.name = fmt::format("message:{}{}B/mpi", adds ? "reduce" : "ring", size.value),
            .flops = Flops{adds ? static_cast<double>(count) : 0},
            .bytes = size,
            .run = [&communicator, data, program = ring_round(communicator, count, adds)] {
                communicator.all_reduce(program, data, kernels::attentive());  // as run waits
            }};
}

// What adding takes beyond putting it where it belongs: most of it goes on while the rest of the message arrives, or
// takes the place of a copy. From rounds that took turns.
calibrate::Figure<Bandwidth> reduce_rate(const Case& copied, const std::vector<double>& copy,
                                         const std::vector<double>& add) {
    std::vector<double> more;
    for (std::size_t i = 0; i < copy.size(); ++i) more.push_back(add[i] - copy[i]);
    // Less than a thousandth of the message cannot be told from nothing.
    const double seconds = std::max(calibrate::median(more), 1e-3 * calibrate::median(copy));
    return {Bandwidth{copied.bytes.value / seconds}, std::min(calibrate::robust_deviation(more) / seconds, 10.0),
            static_cast<std::int64_t>(more.size())};
}

}  // namespace

// The last round of a ring all-reduce, or the first.
kernels::RankProgram ring_round(const kernels::Communicator& communicator, std::int64_t count, bool adds) {
    const Group group{communicator.size(), communicator.size()};
    const Collective ring = all_reduce({}, group, communicator.size() * count);
    kernels::RankProgram program(ring, communicator.rank());
    if (adds) {
        program.rounds.resize(1);
    } else {
        program.rounds.erase(program.rounds.begin(), program.rounds.end() - 1);
    }
    return program;
}

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
    const std::int64_t most = most_within(rounds.budget * 0.5, communicator, team);
    std::vector<float> data(static_cast<std::size_t>(communicator.size() * most), 0.5F);
    std::vector<Case> cases;
    for (std::int64_t count = smallest; count <= most; count *= 2) {
        cases.push_back(round_of(communicator, data, count, false));
    }
    const std::size_t last = cases.size() - 1;
    cases.push_back(round_of(communicator, data, most, true));
    const Times times = time(cases, {rounds.count, rounds.budget * 0.7}, team);
    calibrate::Messages messages;
    for (std::size_t i = 0; i <= last; ++i) {
        for (const double seconds : times.seconds[i]) messages.samples.push_back({cases[i].bytes, Seconds{seconds}});
    }
    messages.reduce = reduce_rate(cases[last], times.seconds[last], times.seconds[last + 1]);
    messages.overlap = measure_overlap(communicator, {rounds.count, rounds.budget * 0.3});
    return messages;
}

}  // namespace rehearse::bench
