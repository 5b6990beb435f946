// SPDX-License-Identifier: Apache-2.0
// Random plans (tests/schedule/random_plans.hpp) with real tensors: gradients and weights are those of one rank. Run
// under mpirun with 2 and 4 ranks; REHEARSE_PLANS=N tries N jobs, REHEARSE_SEED=S others.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "core/error.hpp"
#include "run/limits.hpp"
#include "run/trainer.hpp"
#include "tests/run/networks.hpp"
#include "tests/schedule/random_plans.hpp"

namespace rehearse::run {
namespace {

using kernels::Communicator;
using rehearse::test::RandomJob;

/// Nothing where the plan is refused, for this network or by `run`.
std::optional<Schedule> schedule_of(const RandomJob& job, const Options& options) {
    try {
        Schedule made = test::schedule_of(test::random_networks()[static_cast<std::size_t>(job.network)], job.plan(),
                                          Communicator::world().size(), job.batch, job.optimizer, job.precision);
        if (first_limit({made, options, "cpu"}) == nullptr) return made;
    } catch (const InputError&) {
    }
    return std::nullopt;
}

/// Whether it was run, and what came out says something: beyond a tolerance of a tenth, which grows with what training
/// makes of rounding, agreeing says nothing.
bool expect_gradients(const RandomJob& job) {
    SCOPED_TRACE(job.text());
    Options options{.steps = 2, .check_gradients = true};
    options.learning_rate = 0.1 * default_learning_rate(job.optimizer);
    if (job.plan().find("tables=") != std::string::npos) options.momentum = 0;
    const std::optional<Schedule> schedule = schedule_of(job, options);
    if (!schedule) return false;
    options.single_rank = std::make_shared<const Schedule>(
        test::schedule_of(schedule->network, "data", 1, micro_batch_size(*schedule), job.optimizer, job.precision));
    Result result;
    try {
        result = train_on(Communicator::world(), *schedule, options, {}, {});
    } catch (const std::exception& error) {
        ADD_FAILURE() << error.what();  // with the job
        throw;
    }
    EXPECT_LE(result.gradient_error, result.gradient_tolerance);
    return result.gradient_tolerance < 0.1;
}

TEST(RandomPlans, GiveTheGradientsOfOneRank) {
    const std::int64_t plans = rehearse::test::number("REHEARSE_PLANS", 100);
    test::RandomJobs jobs(static_cast<std::uint64_t>(rehearse::test::number("REHEARSE_SEED", 1)));
    std::int64_t said = 0;
    for (std::int64_t i = 0; i < plans; ++i) {
        RandomJob job = jobs.draw(Communicator::world().size());
        job.precision = Precision::fp32;  // train_test checks gradients in 16 bits
        if (Communicator::world().rank() == 0 && std::getenv("REHEARSE_SHOW") != nullptr)
            fmt::print(stderr, "{}\n", job.text());
        said += expect_gradients(job) ? 1 : 0;
    }
    if (Communicator::world().rank() == 0) fmt::print("{} jobs, {} of them run\n", plans, said);
    EXPECT_GT(said, plans / 10);
}

}  // namespace
}  // namespace rehearse::run
