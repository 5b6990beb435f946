// SPDX-License-Identifier: Apache-2.0
// The auto-tuner of learners: by hand, and against models trained one after the other.
#include "run/methods/learner_tuner.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <memory>
#include <tuple>

#include "run/data/feed.hpp"
#include "run/loss_target.hpp"
#include "run/random.hpp"
#include "run/trainer.hpp"
#include "tests/run/networks.hpp"

namespace rehearse::run {
namespace {

using kernels::Communicator;
using testing::ElementsAre;

/// A device that m learners fill as cores are filled: min(m, cores) times 100 samples a second, 2 less for each beyond.
double device(int learners, int cores) {
    return 100.0 * std::min(learners, cores) - 2.0 * std::max(0, learners - cores);
}

std::vector<int> numbers(LearnerTuner& tuner, int phases, int cores) {
    std::vector<int> numbers;
    for (int i = 0; i < phases; ++i) {
        numbers.push_back(tuner.learners());
        tuner.measured(device(tuner.learners(), cores));
    }
    return numbers;
}

TEST(LearnerTuner, ClimbsUntilALearnerGainsNothing) {
    LearnerTuner tuner{1, 8, 0.05};
    EXPECT_THAT(numbers(tuner, 7, 3), ElementsAre(1, 2, 3, 4, 3, 3, 3));
    LearnerTuner few{1, 2, 0.05};
    EXPECT_THAT(numbers(few, 4, 3), ElementsAre(1, 2, 2, 2));
}

TEST(LearnerTuner, FollowsTheCoresThatOthersTakeAndLeave) {
    LearnerTuner tuner{1, 8, 0.05};
    numbers(tuner, 6, 4);
    // Two of four cores are taken: 4 learners come to 196; 3 to 198 and 2 to 200, as many; 1 to 100, so that it is 2.
    EXPECT_THAT(numbers(tuner, 6, 2), ElementsAre(4, 3, 2, 1, 2, 2));
    // They are free again. 2 come to the same, of which nothing follows; a device that is faster is tried anew.
    EXPECT_EQ(tuner.measured(260), Tuning::add);
    EXPECT_THAT(numbers(tuner, 4, 4), ElementsAre(3, 4, 5, 4));
}

TEST(LossTarget, IsTheMeanOverTheLastSamples) {
    LossTarget target{Options{.target_loss = 2, .target_samples = 20}};
    const auto after = [&](double loss, std::int64_t batch) {
        const TargetLoss now = target.after(loss, batch);
        return std::tuple{now.mean, now.samples, now.reached};
    };
    EXPECT_EQ(after(1, 10), std::tuple(1, 10, false)) << "20 samples have not been seen";
    EXPECT_EQ(after(4, 10), std::tuple(2.5, 20, false));
    EXPECT_EQ(after(0, 10), std::tuple(2, 20, true)) << "of 4 and 0";
    EXPECT_EQ(after(9, 30), std::tuple(9, 30, false)) << "of its own 30 alone";
    EXPECT_FALSE(LossTarget{Options{}}.after(0, 10).reached) << "nothing was asked for";
}

/// Koliousis et al. 2019, equations 1 and 2, of whole models: z moves by c times the sum of all x - z of the step's
/// beginning; each x learns, and gives up c (x - z).
struct Models {
    std::vector<std::vector<float>> learners;
    std::vector<float> average;
};

/// Always one learner more, of `most`; 1 rank. Each phase has tuning_steps + 1 steps.
std::vector<float> written_out(const Network& network, int most, int phase_steps, float rate, std::uint64_t seed) {
    const Schedule one = test::schedule_of(network, "data", 1, 4);
    Program program{one, RankIndex{0}, {}, key(seed, weights_of), {.learning_rate = rate, .momentum = 0}};
    Feed feed{one, key(seed, data_of), "synthetic", true, -100, 0};
    Models models{{}, floats_of(program.tensors().weights())};
    std::int64_t sample = 0;
    int step = 0;
    for (int m = 1; m <= most; ++m) {
        models.learners.resize(static_cast<std::size_t>(m), models.average);
        for (int i = 0; i < phase_steps; ++i, ++step) {
            std::vector<float> sum(models.average.size(), 0.0F);
            const auto share = static_cast<float>(m == 1 ? 0.0 : 1.0 / m);  // one model is its own average
            for (std::vector<float>& x : models.learners) {
                std::vector<float> apart(x.size());
                for (std::size_t n = 0; n < x.size(); ++n) sum[n] += apart[n] = x[n] - models.average[n];
                assign(program.tensors().weights(), x);
                feed.start_at(0, sample);
                feed.load(0, 0, program);
                program.compute_gradients(0, 0);
                const std::vector<float> gradients = floats_of(program.tensors().applied());
                for (std::size_t n = 0; n < x.size(); ++n) x[n] -= rate * gradients[n] + share * apart[n];
                sample += 4;
            }
            for (std::size_t n = 0; n < sum.size(); ++n) models.average[n] += share * sum[n];
            if (m == 1) models.average = models.learners.front();
        }
    }
    return models.learners.back();
}

TEST(TunedTraining, IsThatOfModelsOneAfterTheOther) {
    const Communicator world = Communicator::world();
    if (world.size() > 1) GTEST_SKIP() << "of one rank";
    Options options{.steps = 9, .learning_rate = 0.02F, .momentum = 0};
    for (int m = 1; m <= 3; ++m) {
        options.by_learners.push_back(std::make_shared<const Schedule>(
            test::schedule_of(test::branches(), fmt::format("data:learners={}", m), 1, 4 * m)));
    }
    options.learner_gain = -0.99;  // whatever it comes to, another one
    options.tuning_steps = 2;
    const Result tuned = train_on(world, *options.by_learners.front(), options, {}, {});
    ASSERT_EQ(tuned.phases.size(), 3U);
    EXPECT_EQ(tuned.phases[2].learners, 3);
    EXPECT_EQ(tuned.phases[0].then, "add");
    EXPECT_EQ(tuned.samples, 3 * 4 * (1 + 2 + 3));
    const std::vector<float> wanted = written_out(test::branches(), 3, 3, 0.02F, options.seed);
    ASSERT_EQ(tuned.weights.size(), wanted.size());
    // Nine updates, each rounded some times: 2^-24 of weights of about 1, and of the differences between kernels.
    for (std::size_t i = 0; i < wanted.size(); ++i) ASSERT_NEAR(tuned.weights[i], wanted[i], 1e-5) << i;
}

TEST(TunedTraining, EndsAtItsTargetOnAllRanks) {
    const Communicator world = Communicator::world();
    Options options{
        .steps = 400, .tuning_steps = 100, .learning_rate = 0.05F, .target_loss = 1e9, .target_samples = 64};
    for (int m = 1; m <= 2; ++m) {
        options.by_learners.push_back(std::make_shared<const Schedule>(
            test::schedule_of(test::branches(), fmt::format("data:learners={}", m), world.size(), 4 * m)));
    }
    const Result tuned = train_on(world, *options.by_learners.front(), options, {}, {});
    EXPECT_TRUE(tuned.target.reached);
    EXPECT_EQ(tuned.samples, 64);
    EXPECT_EQ(static_cast<std::int64_t>(tuned.steps.size()), 64 / (4 * world.size()));
}

}  // namespace
}  // namespace rehearse::run
