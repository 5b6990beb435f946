// SPDX-License-Identifier: Apache-2.0
// A training that goes on from a checkpoint in another way than it began: another precision, batch, learning rate. Run
// under mpirun with 2 and 4 ranks.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include "core/error.hpp"
#include "run/checkpoint/checkpoint.hpp"
#include "run/trainer.hpp"
#include "tests/run/checkpoints.hpp"
#include "tests/run/networks_of_every_kind.hpp"

namespace rehearse::run {
namespace {

using kernels::Communicator;
using test::Folder;
using test::scheduled;

// A run that scales nothing finds no scale: one that goes on from it in 16 bits begins with its own, and a scale that
// was found is kept through steps without.
TEST(ResumedTrainings, GoOnInAnotherPrecisionWithAScale) {
    if (why_no_checkpoints()) GTEST_SKIP() << *why_no_checkpoints();
    const Communicator world = Communicator::world();
    const auto go_on = [&](const std::string& folder, Precision precision, int steps, float scale) {
        const Options options{.steps = steps,
                              .learning_rate = 0.01F,
                              .loss_scale = scale,
                              .growth_interval = 2,
                              .checkpoint = folder,
                              .resume = steps > 1};
        const Result result = train_on(world, scheduled("data", Optimizer::adam, precision), options, {}, {});
        world.barrier();
        return result.steps.back().loss_scale;
    };
    const Folder folder;
    EXPECT_EQ(go_on(folder.path(), Precision::fp32, 1, 512), 1);
    EXPECT_EQ(go_on(folder.path(), Precision::mixed, 2, 1024), 1024) << "no scale was found before";
    EXPECT_EQ(go_on(folder.path(), Precision::bf16, 3, 2048), 1);
    EXPECT_EQ(go_on(folder.path(), Precision::mixed, 4, 4096), 1024) << "the one that was found";
    EXPECT_EQ(go_on(folder.path(), Precision::mixed, 5, 4096), 2048) << "after two good steps";
}

// Gradients that wait for their update are saved as they are, and a run that scales nothing updates by them so: SGD
// without momentum moves each weight by the learning rate times them, which rounds once.
TEST(ResumedTrainings, WithLagGoOnInAnotherPrecisionByTheSameGradients) {
    if (why_no_checkpoints()) GTEST_SKIP() << *why_no_checkpoints();
    const Communicator world = Communicator::world();
    const Folder folder;
    const auto go_on = [&](Precision precision, int steps) {
        const Schedule schedule = scheduled("data:lag=1", Optimizer::sgd, precision);
        const Options options{.steps = steps,
                              .learning_rate = 0.0625F,
                              .momentum = 0,
                              .loss_scale = 1024,
                              .checkpoint = folder.path(),
                              .resume = steps > 2};
        train_on(world, schedule, options, {}, {});
        world.barrier();
        return load(newest(folder.path()).value(), schedule);
    };
    const Checkpoint scaled = go_on(Precision::mixed, 2), after = go_on(Precision::fp32, 3);
    for (std::size_t layer = 0; layer < scaled.layers.size(); ++layer) {
        const LayerState& from = scaled.layers[layer];
        for (std::size_t i = 0; i < from.weights.size(); ++i)
            EXPECT_FLOAT_EQ(after.layers[layer].weights[i], from.weights[i] - 0.0625F * from.lagged[i]);
    }
}

// What the reference trains begins where the job went on, whatever batch, hyperparameters and precision were before.
TEST(ResumedTrainings, BeginTheirReferenceAtTheCheckpoint) {
    if (why_no_checkpoints()) GTEST_SKIP() << *why_no_checkpoints();
    const Communicator world = Communicator::world();
    std::vector<const char*> plans{"tensor", "pipe:microbatches=2", "data=1:lag=1,tensor", "data:kfac=2:damping=1",
                                   "data:allreduce=adasum:lag=1"};
    if (world.size() == 4) plans = {"data=2,tensor=2", "data:zero=2:lag=1"};
    for (const char* plan : plans) {
        for (const Precision precision : {Precision::fp32, Precision::mixed}) {
            const bool only_f32 = std::string_view{plan}.starts_with("data:");  // of these
            if (only_f32 && precision != Precision::fp32 && world.size() == 2) continue;
            SCOPED_TRACE(fmt::format("{} in {}", plan, to_string(precision)));
            const Folder folder;
            Options options{.steps = 2, .learning_rate = 0.05F, .loss_scale = 1024, .checkpoint = folder.path()};
            const auto of_batch = [&](std::int64_t batch) {
                return test::schedule_of(test::branches(), plan, world.size(), batch, Optimizer::adam, precision);
            };
            train_on(world, of_batch(8), options, {}, {});
            world.barrier();
            const Schedule larger = of_batch(16);
            options.steps = 4;
            options.learning_rate = 0.01F;
            options.momentum = 0.8F;
            options.resume = options.rebatch = options.check_gradients = true;
            options.single_rank = std::make_shared<const Schedule>(
                test::schedule_of(test::branches(), "data", 1, micro_batch_size(larger), Optimizer::adam));
            const Result result = train_on(world, larger, options, {}, {});
            EXPECT_LE(result.gradient_error, result.gradient_tolerance);
            if (world.rank() != 0) continue;
            EXPECT_EQ(result.timeline.events.front().iteration, 2) << "steps are the training's";
            EXPECT_EQ(result.timeline.events.back().iteration, 3);
        }
    }
}

// Of ranks with states of their own it begins with the first step: other hyperparameters are refused.
TEST(ResumedTrainings, OfOwnStatesAreHeldToATrainingThatIsAlike) {
    if (why_no_checkpoints()) GTEST_SKIP() << *why_no_checkpoints();
    const Folder folder;
    if (Communicator::world().rank() != 0) return;
    const Schedule schedule = test::schedule_of(test::branches(), "data:local=2", 1, 8);
    Options options{.steps = 1, .learning_rate = 0.05F, .checkpoint = folder.path()};
    train_on(Communicator::self(), schedule, options, {}, {});
    options.steps = 2;
    options.learning_rate = 0.01F;
    options.resume = options.check_gradients = true;
    options.single_rank =
        std::make_shared<const Schedule>(test::schedule_of(test::branches(), "data", 1, micro_batch_size(schedule)));
    EXPECT_THAT([&] { train_on(Communicator::self(), schedule, options, {}, {}); },
                testing::ThrowsMessage<InputError>(testing::HasSubstr("was trained with --learning-rate 0.05 ")));
    options.learning_rate = 0.05F;
    const Result result = train_on(Communicator::self(), schedule, options, {}, {});
    EXPECT_LE(result.gradient_error, result.gradient_tolerance);
}

// Nothing is learnt, so that a step's loss says which samples it was made of: after two steps of 8 a rank the third, of
// 16, has those of the second step of a training of 16 from the start.
TEST(ResumedTrainings, GoOnAtTheNextSampleWithAnotherBatch) {
    if (why_no_checkpoints()) GTEST_SKIP() << *why_no_checkpoints();
    const Communicator world = Communicator::world();
    const auto of_batch = [&](std::int64_t batch) {
        return test::schedule_of(test::branches(), "data", world.size(), batch);
    };
    const Schedule small = of_batch(8), large = of_batch(16);
    const Folder folder;
    Options options{.steps = 2, .learning_rate = 0};
    const Result wanted = train_on(world, large, options, {}, {});
    options.checkpoint = folder.path();
    train_on(world, small, options, {}, {});
    world.barrier();
    options.steps = 3;
    options.resume = true;
    options.rebatch = true;
    const Result resumed = train_on(world, large, options, {}, {});
    ASSERT_EQ(resumed.steps.size(), 1U);
    EXPECT_EQ(resumed.samples, 32 * world.size());
    EXPECT_EQ(resumed.steps[0].loss, wanted.steps[1].loss);
    EXPECT_NE(resumed.steps[0].loss, wanted.steps[0].loss);
    world.barrier();
    EXPECT_EQ(load(newest(folder.path()).value(), large).samples, 32 * world.size());
}

}  // namespace
}  // namespace rehearse::run
