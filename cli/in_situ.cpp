// SPDX-License-Identifier: Apache-2.0
#include "cli/in_situ.hpp"

#include <fmt/format.h>

#include <cmath>

#include "calibrate/fit.hpp"
#include "core/error.hpp"
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

}  // namespace

std::vector<InSituRow> check_in_situ(const run::Session& session, const std::vector<Schedule>& schedules,
                                     const Machine& machine, const kernels::Choices& tuned, Bytes scratch_limit,
                                     int steps) {
    std::vector<InSituRow> rows;
    for (const Schedule& schedule : schedules) {
        run::Options options;
        options.steps = steps;
        options.tuned = tuned;
        options.scratch_limit = scratch_limit;
        options.learning_rate = 1e-4F;  // what is learned does not matter, and must not overflow
        const run::Result result = run::train(session, schedule, options);
        std::vector<double> seconds;
        for (std::size_t i = 1; i < result.steps.size(); ++i) seconds.push_back(result.steps[i].seconds.value);
        InSituRow row{schedule.network.name, schedule.plan, {}, summarize(result.timeline).step, 0};
        row.noise = calibrate::robust_deviation(seconds) / calibrate::median(seconds);
        if (session.rank() == 0) row.predicted = predicted_step(schedule, machine);
        rows.push_back(row);
    }
    return rows;
}

InSitu in_situ(const std::vector<InSituRow>& rows, const std::string& host, const std::string& date, int steps) {
    double squares = 0;
    std::vector<double> noises;
    std::string words;
    for (const InSituRow& row : rows) {
        squares += std::pow(row.error(), 2);
        noises.push_back(row.noise);
        words += fmt::format("{}{} {} {:+.1f} %", words.empty() ? "" : ", ", row.model, row.plan, 100 * row.error());
    }
    InSitu result;
    result.bias = std::sqrt(squares / static_cast<double>(rows.size()));
    result.noise = calibrate::median(noises);
    result.source = fmt::format("measured, {}, {}, {} samples: {}", host, date,
                                rows.size() * static_cast<std::size_t>(steps), words);
    return result;
}

}  // namespace rehearse::cli
