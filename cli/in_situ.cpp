// SPDX-License-Identifier: Apache-2.0
#include "cli/in_situ.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "calibrate/fit.hpp"
#include "calibrate/in_situ.hpp"
#include "calibrate/shared_cores.hpp"
#include "core/error.hpp"
#include "kernels/comm/communicator.hpp"
#include "prices/prices.hpp"
#if REHEARSE_HAS_SIM
#include "sim/simulate.hpp"
#endif

namespace rehearse::cli {

namespace {

Seconds predicted_step([[maybe_unused]] const Schedule& schedule, [[maybe_unused]] const Machine& machine) {
#if REHEARSE_HAS_SIM
    return summarize(sim::simulate(schedule, machine, {}).timeline).step;
#else
    throw BackendError("calibrate: this build has no SimGrid to predict the steps with: give --quick");
#endif
}

// Each rank comes to the same number: prices are the same on all.
int steps_within(Seconds budget, const Schedule& schedule, const DeviceClass& device) {
    Seconds step;
    for (const Step& each : schedule.classes.front().steps) {
        if (const auto* compute = std::get_if<Compute>(&each.action)) step += price(compute->problem, device).time;
    }
    return static_cast<int>(std::clamp(budget / step, 6.0, 100.0));
}

// The median over steps of the rank that takes longest of those of its class: what communication waits for. Ranks may
// have gone on for different numbers of steps.
Seconds slowest(std::vector<double> own, int rank_class) {
    const kernels::Communicator world = kernels::Communicator::world();
    const std::array<double, 2> mine{static_cast<double>(own.size()), static_cast<double>(rank_class)};
    const std::vector<double> sizes = world.all_gather(mine);
    auto fewest = own.size();
    for (std::size_t i = 0; i < sizes.size(); i += 2) fewest = std::min(fewest, static_cast<std::size_t>(sizes[i]));
    own.resize(fewest);
    const std::vector<double> all = world.all_gather(own);
    std::vector<double> most(fewest);
    for (std::size_t i = 0; i < all.size(); ++i) {
        if (sizes[i / fewest * 2 + 1] == mine[1]) most[i % fewest] = std::max(most[i % fewest], all[i]);
    }
    return Seconds{calibrate::median(most)};
}

run::Options options_of(const InSituJob& job, int steps) {
    run::Options options;
    options.steps = steps;
    options.backend = job.selection.backend;
    options.algorithm = job.selection.algorithm;
    options.tuned = job.selection.tuned;
    options.scratch_limit = job.selection.scratch_limit;
    options.learning_rate = 1e-4F;  // what is learned does not matter, and must not overflow
    return options;
}

}  // namespace

// A host is faster in some seconds and slower in others: the schedules take turns.
std::vector<calibrate::InSituStretch> price_in_situ(const InSituJob& job, const std::vector<Schedule>& schedules,
                                                    const Machine& machine, std::vector<calibrate::Sample>& samples) {
    constexpr int rounds = 5;
    const DeviceClass& device = machine.classes.front();
    const double share = calibrate::share_of_core(machine.shared_cores, job.team.rank);
    const Seconds time = job.budget / static_cast<double>(rounds * std::ssize(schedules));
    std::vector<std::vector<calibrate::InSituSteps::Block>> blocks(schedules.size());
    for (int round = 0; round < rounds; ++round) {
        if (round > 0 && job.ends()) break;
        for (std::size_t i = 0; i < schedules.size(); ++i) {
            const int own = class_of(schedules[i], RankIndex{job.team.rank % ranks(schedules[i].mesh)});
            Timeline timeline = run::time_compute_only(job.session, schedules[i], options_of(job, 1), time);
            for (Event& event : timeline.events) event.end = event.start + (event.end - event.start) * share;
            const RankClass& rank_class = schedules[i].classes[static_cast<std::size_t>(own)];
            const Seconds step = slowest(calibrate::step_sums(rank_class, timeline), own);
            blocks[i].push_back({step, std::move(timeline)});
        }
    }
    calibrate::InSituSteps in_situ;
    std::vector<calibrate::InSituStretch> stretches;
    for (std::size_t i = 0; i < schedules.size(); ++i) {
        const int own = class_of(schedules[i], RankIndex{job.team.rank % ranks(schedules[i].mesh)});
        calibrate::InSituSteps own_rank, of_schedule;
        own_rank.add(schedules[i], schedules[i].classes[static_cast<std::size_t>(own)], std::move(blocks[i]), device);
        for (const std::string& text : kernels::Communicator::world().all_gather(own_rank.text())) {
            in_situ.add(text);
            of_schedule.add(text);
        }
        stretches.push_back({schedules[i].network.name, calibrate::stretch_in_steps(samples, of_schedule.times())});
    }
    calibrate::put_in_situ(samples, in_situ.times());
    return stretches;
}

std::vector<calibrate::CheckedStep> check_in_situ(const InSituJob& job, const std::vector<Schedule>& schedules,
                                                  const Machine& machine) {
    std::vector<calibrate::CheckedStep> rows;
    for (const Schedule& schedule : schedules) {
        if (job.ends()) break;
        const int count =
            steps_within(job.budget / static_cast<double>(schedules.size()), schedule, machine.classes.front());
        const run::Result result = run::train(job.session, schedule, options_of(job, count));
        std::vector<double> seconds;
        for (std::size_t i = 1; i < result.steps.size(); ++i) seconds.push_back(result.steps[i].seconds.value);
        calibrate::CheckedStep row{schedule.network.name, schedule.plan, {}, summarize(result.timeline).step, 0, count};
        row.noise = calibrate::robust_deviation(seconds) / calibrate::median(seconds);
        if (job.team.rank == 0) row.predicted = predicted_step(schedule, machine);
        rows.push_back(row);
    }
    return rows;
}

}  // namespace rehearse::cli
