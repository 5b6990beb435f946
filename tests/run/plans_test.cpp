// SPDX-License-Identifier: Apache-2.0
// Every way to split a training run, with real tensors: gradients and weights are those of one rank. Run under mpirun
// with 2, 4 and 8 ranks. Networks that take tokens: token_plans_test.cpp.
#include <gmock/gmock.h>

#include "core/error.hpp"
#include "core/precision.hpp"
#include "run/trainer.hpp"
#include "tests/run/networks.hpp"
#include "tests/run/train_checked.hpp"

namespace rehearse::run {
namespace {

using kernels::Communicator;
using test::add;
using test::train_checked;

/// Dense layers that can be cut into eight, with a dropout between two of them.
Network perceptron() {
    Network n{.name = "perceptron", .layers = {}};
    int at = add(n, "input", Input{{24}}, {});
    for (int i = 0; i < 5; ++i) {
        at = add(n, "fc" + std::to_string(i), MatMul{.m = 1, .n = 32, .k = i == 0 ? 24 : 32}, {at});
        at = add(n, "relu" + std::to_string(i), Activation{Nonlinearity::relu, {32}}, {at});
        if (i == 2) at = add(n, "drop", Dropout{{32}, 0.75}, {at});
    }
    at = add(n, "out", MatMul{.m = 1, .n = 10, .k = 32}, {at});
    add(n, "loss", SoftmaxLoss{10}, {at});
    check(n);
    return n;
}

/// Convolutions with a shortcut over two of them, pooling, a flattened image and dense layers.
Network convolutions() {
    Network n{.name = "convolutions", .layers = {}};
    const Window same{.kernel_h = 3, .kernel_w = 3, .pad_top = 1, .pad_left = 1, .pad_bottom = 1, .pad_right = 1};
    const auto conv = [&](std::int64_t channels, std::int64_t size) {
        return Conv{.channels = channels, .height = size, .width = size, .filters = 16, .window = same, .bias = true};
    };
    const int input = add(n, "input", Input{{3, 8, 8}}, {});
    const int a = add(n, "a", conv(3, 8), {input});
    const int ra = add(n, "ra", Activation{Nonlinearity::relu, {16, 8, 8}}, {a});
    const int b = add(n, "b", conv(16, 8), {ra});
    const int rb = add(n, "rb", Activation{Nonlinearity::relu, {16, 8, 8}}, {b});
    const int sum = add(n, "sum", Add{{16, 8, 8}, 2}, {ra, rb});
    const Window half{.kernel_h = 2, .kernel_w = 2, .stride_h = 2, .stride_w = 2};
    const int pool = add(n, "pool", rehearse::Pool{PoolKind::max, 16, 8, 8, half}, {sum});
    const int c = add(n, "c", conv(16, 4), {pool});
    const int rc = add(n, "rc", Activation{Nonlinearity::relu, {16, 4, 4}}, {c});
    const int flat = add(n, "flatten", Flatten{{16, 4, 4}}, {rc});
    const int fc = add(n, "fc", MatMul{.m = 1, .n = 32, .k = 256}, {flat});
    const int rf = add(n, "rf", Activation{Nonlinearity::relu, {32}}, {fc});
    const int out = add(n, "out", MatMul{.m = 1, .n = 4, .k = 32}, {rf});
    add(n, "loss", SoftmaxLoss{4}, {out});
    check(n);
    return n;
}

// Each bucket a vector, of one layer or of several.
TEST(Adasum, CombinesTheRanksOwnMeans) {
    for (const char* plan : {"data:allreduce=adasum:bucket=1B:first=1B", "data:allreduce=adasum:microbatches=2"}) {
        SCOPED_TRACE(plan);
        const Result result = train_checked(convolutions(), plan, 4, 3);
        EXPECT_GT(result.gradient_tolerance, 0);
        EXPECT_LE(result.gradient_error, result.gradient_tolerance);
    }
}

/// Copies with unlike numbers of samples: statistics of each batch normalization are its own micro-batch's, the loss a
/// mean over all.
TEST(Plans, WithUnevenSharesGiveTheGradientsOfOneRank) {
    const std::int64_t ranks = Communicator::world().size();
    std::vector<const char*> plans;
    if (ranks == 2) {
        plans = {"data:shares=3+1", "data:shares=1+3:microbatches=2:zero=2", "data:shares=3+1:zero=3:bucket=1kB",
                 "data:shares=3+1:lag=1:compress=fp16"};
    } else if (ranks == 4) {
        plans = {"data:shares=3x1+5:zero=1", "data=2:shares=3+1,tensor=2", "pipe=2:microbatches=2,data=2:shares=3+1",
                 "data=2:shares=1+3,pipe=2:schedule=gpipe:microbatches=2"};
    } else {
        plans = {"data=2:shares=1+3,pipe=2:microbatches=2,tensor=2",
                 "pipe=4:copies=1+2+1:microbatches=2,data=2:shares=1+3"};
    }
    for (const Network& network : {perceptron(), test::branches()}) {
        for (const char* plan : plans) {
            SCOPED_TRACE(network.name + ", " + plan);
            const Result result = train_checked(network, plan, 8, 2);
            EXPECT_LE(result.gradient_error, result.gradient_tolerance);
            EXPECT_LT(result.gradient_tolerance, 4e-3);
        }
    }
}

void expect_one_ranks_gradients(const std::vector<const char*>& plans) {
    for (const Network& network : {perceptron(), convolutions(), test::branches()}) {
        for (const char* plan : plans) {
            SCOPED_TRACE(network.name + ", " + plan);
            const Result result = train_checked(network, plan, 8, 2);
            EXPECT_LE(result.gradient_error, result.gradient_tolerance);
            EXPECT_LT(result.gradient_tolerance, 1e-3);
        }
    }
}

TEST(Plans, OfTwoRanksGiveTheGradientsOfOne) {
    if (Communicator::world().size() != 2) GTEST_SKIP() << "of two ranks";
    expect_one_ranks_gradients({"tensor", "pipe:microbatches=1", "pipe", "pipe:schedule=gpipe:microbatches=4",
                                "pipe:microbatches=8:recompute=on", "pipe:schedule=interleaved:microbatches=4",
                                "data:microbatches=4", "data:zero=1", "data:zero=2:bucket=1kB",
                                "data:zero=3:bucket=1kB", "data:zero=3:microbatches=4:bucket=1kB",
                                "pipe:schedule=pipedream:microbatches=4"});
}

TEST(Plans, OfFourRanksGiveTheGradientsOfOne) {
    if (Communicator::world().size() != 4) GTEST_SKIP() << "of four ranks";
    expect_one_ranks_gradients({"tensor=2,data=2",
                                "data=2,tensor=2:split=filters",
                                "data=2,tensor=2:split=channels",
                                "data=2,tensor=2:allreduce=doubling",
                                "pipe=2:microbatches=4,data=2",
                                "data=2,pipe=2:schedule=gpipe:microbatches=2",
                                "pipe=4:microbatches=8",
                                "pipe=4:microbatches=4:cut=2+3+6",
                                "pipe=2:microbatches=2,tensor=2",
                                "data=2,pipe=2:schedule=interleaved:microbatches=2",
                                "data:zero=2:microbatches=2",
                                "pipe=2:microbatches=4,data=2:zero=2",
                                "data=2:zero=3:bucket=1kB,tensor=2",
                                "pipe=2:microbatches=4,data=2:zero=3:bucket=1kB",
                                "pipe=2:recompute=on:microbatches=2,data=2:zero=3",
                                "pipe=2:schedule=pipedream:microbatches=8,data=2",
                                "pipe=4:schedule=pipedream:microbatches=4",
                                "pipe=4:copies=2+1+1:microbatches=8",
                                "pipe=4:copies=2+2:microbatches=8",
                                "pipe=4:copies=1+2+1:microbatches=4",
                                "pipe=4:copies=1+2+1:schedule=gpipe:microbatches=8",
                                "pipe=4:copies=2+2:microbatches=4:recompute=on",
                                "pipe=4:copies=2+1+1:microbatches=4,data=1:zero=1",
                                "pipe=4:copies=1+2+1:microbatches=4,data=1:zero=2:bucket=1kB",
                                "pipe=4:copies=2+1+1:microbatches=8,data=1:zero=3:bucket=1kB",
                                "pipe=4:copies=2+2:schedule=gpipe:microbatches=4,data=1:zero=3",
                                "pipe=4:copies=2+1+1:microbatches=4,data=1:lag=1",
                                "pipe=4:schedule=pipedream:microbatches=8",
                                "pipe=2:schedule=pipedream:microbatches=4,data=2:bucket=1kB"});
}

TEST(Plans, OfEightRanksGiveTheGradientsOfOne) {
    if (Communicator::world().size() != 8) GTEST_SKIP() << "of eight ranks";
    expect_one_ranks_gradients({"data=2,pipe=2:microbatches=2,tensor=2", "pipe=2:microbatches=4,data=2:zero=1,tensor=2",
                                "tensor=2,pipe=4:microbatches=4", "pipe=4:copies=2+2:microbatches=4,tensor=2",
                                "pipe=8:copies=4+2+1+1:microbatches=8", "pipe=4:copies=1+2+1:microbatches=4,data=2",
                                "pipe=8:copies=1+4+2+1:microbatches=8",
                                "pipe=4:copies=2+1+1:microbatches=4,data=2:zero=2",
                                "pipe=8:copies=4+2+1+1:microbatches=8,data=1:zero=3",
                                "pipe=4:copies=1+2+1:microbatches=4,data=2:zero=3:bucket=1kB"});
}

TEST(Plans, OneWeirdTrickGivesTheGradientsOfOneRank) {
    const std::int64_t size = Communicator::world().size();
    std::vector<std::string> plans{"data:dense=shared", "data:dense=shared:microbatches=2:bucket=1kB",
                                   "data:dense=shared:allreduce=adasum"};
    if (size == 4)
        plans = {"data:dense=shared:zero=1", "data:dense=shared:allreduce=adasum",
                 "data=2:dense=shared,pipe=2:microbatches=2"};
    if (size == 8)
        plans = {"data=4:dense=shared,pipe=2:microbatches=2", "pipe=4:copies=2+2:microbatches=4,data=2:dense=shared"};
    for (const std::string& plan : plans) {
        for (const Network& network : {convolutions(), perceptron()}) {  // with a dropout among its dense layers
            SCOPED_TRACE(network.name + ", " + plan);
            const Result result = train_checked(network, plan, 8, 2);
            EXPECT_LE(result.gradient_error, result.gradient_tolerance);
            EXPECT_LT(result.gradient_tolerance, 1e-3);
        }
    }
}

// Against its own semantics, written out: each update by the gradients of the step before.
TEST(Plans, WithLagUpdateByTheLastStepsGradients) {
    const std::int64_t size = Communicator::world().size();
    if (size > 4) GTEST_SKIP() << "of two and four ranks";
    std::vector<const char*> plans{"data:lag=1", "data:lag=1:zero=1", "data:lag=1:zero=2:bucket=1kB"};
    if (size == 4) plans = {"data=2:lag=1,pipe=2:microbatches=2", "data=2:lag=1,tensor=2"};
    for (const char* plan : plans) {
        for (const int steps : {1, 4}) {
            SCOPED_TRACE(std::string{plan} + ", steps " + std::to_string(steps));
            const Result result = train_checked(convolutions(), plan, 8, steps);
            EXPECT_LE(result.gradient_error, result.gradient_tolerance);
            EXPECT_LT(result.gradient_tolerance, 1e-3);
        }
    }
    const Result mixed = train_checked(convolutions(), plans.front(), 8, 3, Precision::mixed);
    EXPECT_LE(mixed.gradient_error, mixed.gradient_tolerance);
}

/// Against f32 on one rank, by what rounding to 16 bits can reach.
void expect_gradients_in_16_bits(const std::vector<const char*>& plans) {
    for (const Precision precision : {Precision::fp16, Precision::pure_bf16, Precision::mixed, Precision::mixed_bf16,
                                      Precision::autocast, Precision::bf16}) {
        const bool narrow = compute_type(precision) == DataType::bf16;
        for (const char* plan : plans) {
            SCOPED_TRACE(std::string{plan} + ", " + std::string{to_string(precision)});
            const Result result = train_checked(convolutions(), plan, 8, 2, precision);
            EXPECT_LE(result.gradient_error, result.gradient_tolerance);
            EXPECT_GT(result.gradient_error, 0x1p-20) << "f32 would be nearer";
            // Wide where a changed weight makes a pool take another pixel: 0.6 in f16, 2.1 in bf16.
            EXPECT_LT(result.gradient_tolerance, narrow ? 4 : 1);
            EXPECT_LT(result.gradient_error, narrow ? 1 : 0.25);
        }
    }
}

TEST(Plans, OfTwoRanksGiveTheGradientsOfF32In16Bits) {
    if (Communicator::world().size() != 2) GTEST_SKIP() << "of two ranks";
    expect_gradients_in_16_bits({"data", "tensor", "pipe", "data:zero=1:microbatches=2", "data:zero=2",
                                 "data:zero=3:microbatches=2:bucket=1kB"});
}

TEST(Plans, OfFourRanksGiveTheGradientsOfF32In16Bits) {
    if (Communicator::world().size() != 4) GTEST_SKIP() << "of four ranks";
    expect_gradients_in_16_bits({"data=2,tensor=2", "pipe=2:microbatches=2,data=2:zero=1"});
}

TEST(Plans, GradientsMayBeSentIn16Bits) {
    if (Communicator::world().size() > 4) GTEST_SKIP() << "of two and four ranks";
    for (const char* plan : {"data:compress=fp16", "data:compress=bf16:zero=1", "data:compress=fp16:zero=2"}) {
        SCOPED_TRACE(plan);
        const Result result = train_checked(perceptron(), plan, 8, 2);
        EXPECT_LE(result.gradient_error, result.gradient_tolerance);
        EXPECT_GT(result.gradient_error, 0x1p-20) << "f32 would be nearer";
    }
}

// 2^24 times the gradients is beyond 65504: every rank skips those steps, halves the scale, and goes on when it fits.
TEST(Plans, AStepWhoseGradientsOverflowUpdatesNothing) {
    if (Communicator::world().size() > 4) GTEST_SKIP() << "of two and four ranks";
    for (const char* plan : {"data", "pipe=2,data"}) {
        SCOPED_TRACE(plan);
        const Result result = train_checked(perceptron(), plan, 8, 16, Precision::mixed, 0x1p24F);
        ASSERT_EQ(result.steps.size(), 16U);
        EXPECT_TRUE(result.steps.front().skipped);
        EXPECT_FALSE(result.steps.back().skipped && result.steps[14].skipped);
        float scale = 0x1p24F;
        int good = 0;
        for (const StepReport& step : result.steps) {
            EXPECT_EQ(step.loss_scale, scale);
            EXPECT_TRUE(std::isfinite(step.loss)) << "nothing that overflowed has come into the weights";
            good = step.skipped ? 0 : good + 1;
            if (step.skipped) scale /= 2;
            if (good == 2) scale *= 2, good = 0;
        }
        EXPECT_LE(result.gradient_error, result.gradient_tolerance);
    }
}

TEST(Plans, PipeDreamsUpdatesAreNotThoseOfASynchronousPipeline) {
    if (Communicator::world().size() != 2) GTEST_SKIP() << "of two ranks";
    const Result stale = train_checked(perceptron(), "pipe:schedule=pipedream:microbatches=4", 8, 2);
    const Result synchronous = train_checked(perceptron(), "pipe:schedule=1f1b:microbatches=4", 8, 2);
    EXPECT_NE(stale.weights, synchronous.weights);
}

TEST(Plans, AWrongGradientIsFound) {
    const Communicator world = Communicator::world();
    // Without its sums each rank of the tensor axis goes on with its part of a product.
    const Network network = perceptron();
    Schedule schedule = test::schedule_of(network, "tensor", world.size(), 8);
    for (Step& step : schedule.classes[0].steps) {
        if (auto* action = std::get_if<Communicate>(&step.action);
            action != nullptr && action->pass == Pass::backward_data) {
            action->elements = 0;  // nothing is summed
        }
    }
    Options options{.steps = 1, .check_gradients = true};
    options.single_rank = std::make_shared<const Schedule>(test::schedule_of(network, "data", 1, 8));
    const Result result = train_on(world, schedule, options, {}, {});
    EXPECT_GT(result.gradient_error, 10 * result.gradient_tolerance);
}

}  // namespace
}  // namespace rehearse::run
