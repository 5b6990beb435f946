// SPDX-License-Identifier: Apache-2.0
// Transformers and tables, Adam and LAMB. Run under mpirun with 1, 2 and 4 ranks.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>

#include "core/error.hpp"
#include "models/huggingface/families.hpp"
#include "run/data/feed.hpp"
#include "run/random.hpp"
#include "run/reference/part_check.hpp"
#include "run/trainer.hpp"
#include "tests/run/difference.hpp"
#include "tests/run/networks.hpp"

namespace rehearse::run {
namespace {

using kernels::Communicator;
using models::TransformerKind;
using test::difference;

Result train_network(const Communicator& ranks, const Network& network, std::int64_t batch, const Options& options,
                     Optimizer optimizer = Optimizer::sgd) {
    const char* plan = options.check_gradients ? "data:bucket=2kB" : "data";  // many buckets, or few for many steps
    return train_on(ranks, test::schedule_of(network, plan, ranks.size(), batch, optimizer), options, {}, {});
}

// As in train_test.cpp, for two evaluations of a chain of layers with sums of at most `terms` terms. A normalization
// divides by a deviation that may be small beside what it is the deviation of: a factor of 4 for each half of a block.
double chain_tolerance(double layers, double terms) { return 4 * 2 * 2 * layers * terms * 0x1p-24; }

TEST(TransformerGradients, OnAllRanksAreThoseOfTheWholeBatchOnOneRank) {
    const Communicator world = Communicator::world();
    for (const TransformerKind kind : {TransformerKind::encoder, TransformerKind::decoder}) {
        for (const double keep : {1.0, 0.75}) {
            const Network network = test::tiny_transformer(kind, keep);
            const Options options{.steps = 2, .learning_rate = 0, .check_gradients = true};
            const Result together = train_network(world, network, 8 / world.size(), options);
            EXPECT_LE(together.gradient_error, together.gradient_tolerance);
            EXPECT_LT(together.gradient_tolerance, 1e-6);
            // The longest sum: a weight over 8 tokens of 8 samples. Two blocks of six layers, and three around them.
            const Result single = train_network(Communicator::self(), network, 8, options);
            EXPECT_LE(difference(together.gradients, single.gradients), chain_tolerance(15, 64));
        }
    }
}

TEST(TransformerGradients, ByTheBestKernelsAreThoseOfThePlainLoops) {
    const Communicator world = Communicator::world();
    for (const Network& network : {test::tiny_transformer(TransformerKind::encoder),
                                   test::tiny_transformer(TransformerKind::decoder), test::tiny_dlrm()}) {
        SCOPED_TRACE(network.name);
        const Result best = train_network(world, network, 4, {.steps = 1, .check_gradients = true});
        const Result loops = train_network(world, network, 4, {.steps = 1, .backend = "reference"});
        EXPECT_LE(best.gradient_error, best.gradient_tolerance);
        EXPECT_LE(difference(best.gradients, loops.gradients), chain_tolerance(15, 64));
    }
}

// Scores with biases of distances, of which each half picks its own, and a mask.
TEST(TransformerGradients, OfT5AreThoseOfThePlainLoopsAndOfOneRank) {
    const Communicator world = Communicator::world();
    const Network network = models::huggingface::from_config(
        R"({"model_type": "t5", "d_model": 16, "d_kv": 4, "d_ff": 16, "num_layers": 1, "num_heads": 2,
            "vocab_size": 20, "dropout_rate": 0})",
        "config.json", "t5", {.sizes = {{"tokens", 6}}});
    const Result best = train_network(world, network, 4, {.steps = 2, .check_gradients = true});
    EXPECT_LE(best.gradient_error, best.gradient_tolerance);
    EXPECT_LT(best.gradient_tolerance, 1e-4);
    const Result loops = train_network(world, network, 4, {.steps = 2, .backend = "reference"});
    EXPECT_LE(difference(best.gradients, loops.gradients), 1e-4);
}

Schedule decoder_of(Precision precision, Optimizer optimizer, std::int64_t ranks, std::int64_t batch) {
    return test::schedule_of(test::tiny_decoder(), "data", ranks, batch, optimizer, precision);
}

Result train_in_16_bits(const Schedule& schedule, Options options) {
    options.check_gradients = true;
    options.loss_scale = 1024;
    options.single_rank = std::make_shared<const Schedule>(
        decoder_of(Precision::fp32, schedule.optimizer, 1, micro_batch_size(schedule)));
    return train_on(Communicator::world(), schedule, options, {}, {});
}

// What vanishes in 16 bits vanishes in the reference too: squares of gradients in f16; in bf16 steps of 0.0015 beside
// gammas of 1, half a unit of which is 2^-9, so that 80 of them would be twice what is allowed.
TEST(TransformerGradients, In16BitsAreHeldToMomentsAndWeightsInThem) {
    const std::int64_t ranks = Communicator::world().size(), batch = 8 / ranks;
    const Result squares = train_in_16_bits(decoder_of(Precision::fp16, Optimizer::lamb, ranks, batch),
                                            {.steps = 5, .learning_rate = 0.01F});
    EXPECT_LE(squares.gradient_error, squares.gradient_tolerance);
    EXPECT_LT(squares.gradient_tolerance, 1);
    const Result steps = train_in_16_bits(decoder_of(Precision::pure_bf16, Optimizer::adam, ranks, batch),
                                          {.steps = 80, .learning_rate = 0.0015F});
    EXPECT_LE(steps.gradient_error, steps.gradient_tolerance);
}

TEST(TransformerGradients, In16BitsThatMissOneRankAreFound) {
    const std::int64_t ranks = Communicator::world().size();
    if (ranks == 1) GTEST_SKIP() << "needs an all-reduce";
    for (const Precision precision : {Precision::fp16, Precision::pure_bf16}) {
        for (const Optimizer optimizer : {Optimizer::sgd, Optimizer::lamb}) {
            SCOPED_TRACE(fmt::format("{}, {}", to_string(precision), to_string(optimizer)));
            Schedule schedule = decoder_of(precision, optimizer, ranks, 8 / ranks);
            auto& steps = schedule.classes[0].steps;
            std::erase_if(steps, [](const Step& step) { return is_communicator(step.stream); });
            for (Step& step : steps) step.after.clear();
            const Result result = train_in_16_bits(schedule, {.steps = 2, .learning_rate = 0.01F});
            EXPECT_GT(result.gradient_error, result.gradient_tolerance);
        }
    }
}

/// Compares a training by the factors `own` on one rank with the reference by those `asked` for.
GradientCheck check_updates(Precision precision, Optimizer optimizer, const Hyperparameters& own,
                            const Hyperparameters& asked) {
    constexpr int steps = 3;
    const Schedule schedule = decoder_of(precision, optimizer, 1, 8);
    const Schedule single = decoder_of(Precision::fp32, optimizer, 1, 8);
    Feed feed(schedule, key(1, data_of), Options{}.data, true, Options{}.ignored_label, 0);
    const auto load = [&](int step, std::int64_t first, Program& program) { feed.load(step, first, program); };
    Program program{schedule, RankIndex{0}, {}, 5, own};
    for (int step = 0; step < steps; ++step) {
        load(step, 0, program);
        program.compute_gradients(0, 0);
        for (ReadyStep& ready : program.steps()) {
            if (std::holds_alternative<Update>(ready.step->action)) program.compute(ready, 0, 0);
        }
    }
    return check_part(schedule, RankIndex{0}, program, single,
                      {.selection = {},
                       .weights_seed = 5,
                       .hyperparameters = asked,
                       .steps = steps,
                       .scale = program.scale().now(),
                       .dropout_seed = [](int) { return 0; },
                       .load = load});
}

// By an epsilon that bounds what Adam divides by it where squares of gradients vanish, and steps of a length that
// rounding does not reach.
TEST(TransformerGradients, In16BitsFindUpdatesByAnotherMomentum) {
    const Hyperparameters asked{.learning_rate = 0.1F, .momentum = 0.9F, .epsilon = 0.0055F, .loss_scale = 1024};
    Hyperparameters other = asked;
    other.momentum = 0.5F;
    const std::pair<Precision, Optimizer> cases[]{{Precision::fp16, Optimizer::adam},
                                                  {Precision::fp16, Optimizer::lamb},
                                                  {Precision::pure_bf16, Optimizer::lamb}};
    for (const auto& [precision, optimizer] : cases) {
        SCOPED_TRACE(fmt::format("{}, {}", to_string(precision), to_string(optimizer)));
        const GradientCheck right = check_updates(precision, optimizer, asked, asked);
        EXPECT_LE(right.error, right.tolerance);
        const GradientCheck wrong = check_updates(precision, optimizer, other, asked);
        EXPECT_GT(wrong.error, wrong.tolerance);
    }
}

TEST(TransformerTraining, LearnsWhatFollows) {
    const Communicator world = Communicator::world();
    for (const Optimizer optimizer : {Optimizer::adam, Optimizer::lamb}) {
        const Options options{.steps = 30, .learning_rate = 0.01F};
        const Result result = train_network(world, test::tiny_transformer(TransformerKind::decoder), 16 / world.size(),
                                            options, optimizer);
        // 23 words, nothing known yet: near ln 23 = 3.1. The language itself has less than 2.
        EXPECT_NEAR(result.steps.front().loss, std::log(23.0), 1);
        EXPECT_LT(result.steps.back().loss, result.steps.front().loss - 0.25) << to_string(optimizer);
    }
}

TEST(TransformerTraining, TwiceGivesTheSameBitsOnEveryRank) {
    const Communicator world = Communicator::world();
    for (const Optimizer optimizer : {Optimizer::sgd, Optimizer::adam, Optimizer::lamb}) {
        const Options options{.steps = 3, .learning_rate = 0.01F, .weight_decay = 0.01F};
        const Network network = test::tiny_transformer(TransformerKind::encoder, 0.9);
        const Result first = train_network(world, network, 2, options, optimizer);
        const Result second = train_network(world, network, 2, options, optimizer);
        EXPECT_EQ(first.weights, second.weights);
        const std::vector<double> own(first.weights.begin(), first.weights.end());
        const std::vector<double> all = world.all_gather(own);
        for (std::size_t i = 0; i < all.size(); ++i) ASSERT_EQ(all[i], own[i % own.size()]) << "weight " << i;
    }
}

// Adam's first step, without decay: every weight with a gradient moves by the learning rate against its sign. An
// epsilon of 1e-8 shortens the step of a gradient of 1e-6 or more by 1 % at most.
TEST(TransformerTraining, MovesEachWeightByTheLearningRateFirst) {
    const Communicator world = Communicator::world();
    const Network network = test::tiny_transformer(TransformerKind::decoder);
    const Result still = train_network(world, network, 4, {.steps = 1, .learning_rate = 0}, Optimizer::adam);
    const Result moved = train_network(world, network, 4, {.steps = 1, .learning_rate = 0.5F}, Optimizer::adam);
    ASSERT_EQ(still.gradients, moved.gradients);
    for (std::size_t i = 0; i < moved.weights.size(); ++i) {
        if (std::abs(moved.gradients[i]) < 1e-6F) continue;
        const double step = still.weights[i] - moved.weights[i];
        ASSERT_NEAR(step, std::copysign(0.5, moved.gradients[i]), 0.006) << "weight " << i;
    }
}

// The second input's ids are drawn apart from the first's: both tables learn, and two ranks as one.
TEST(TransformerTraining, TakesASecondInputOfOneKind) {
    const Communicator world = Communicator::world();
    Network n{.name = "two", .layers = {}};
    const int a = test::add(n, "a", Input{{4}, 5}, {});
    const int b = test::add(n, "b", Input{{4}, 5}, {});
    const int sum =
        test::add(n, "sum", Add{{4, 3}},
                  {test::add(n, "left", Embedding{4, 5, 3}, {a}), test::add(n, "right", Embedding{4, 5, 3}, {b})});
    const int flat = test::add(n, "flat", Flatten{{4, 3}}, {sum});
    test::add(n, "loss", SoftmaxLoss{12}, {flat});
    const Result result = train_network(world, n, 2, {.steps = 2, .check_gradients = true});
    EXPECT_LE(result.gradient_error, result.gradient_tolerance);
    const std::vector<float>& gradients = result.gradients;
    ASSERT_EQ(gradients.size(), 2U * 5 * 3);
    const auto moves = [](std::span<const float> part) {
        return std::ranges::any_of(part, [](float each) { return each != 0; });
    };
    EXPECT_TRUE(moves(std::span{gradients}.first(15)));
    EXPECT_TRUE(moves(std::span{gradients}.last(15)));
    EXPECT_FALSE(std::ranges::equal(std::span{gradients}.first(15), std::span{gradients}.last(15)));
}

}  // namespace
}  // namespace rehearse::run
