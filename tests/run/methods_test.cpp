// SPDX-License-Identifier: Apache-2.0
// Methods that do more than sum gradients: models of the ranks' own and their averages, gradients in fewer bits, shares
// and weights in turn. Each training is held to what it means, written out for one rank. Run under mpirun with 2, 3, 4
// and 8 ranks.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include <bit>
#include <cmath>
#include <numeric>
#include <thread>

#include "core/error.hpp"
#include "models/zoo/zoo.hpp"
#include "run/methods/architecture.hpp"
#include "run/methods/averaging.hpp"
#include "run/methods/compression.hpp"
#include "run/methods/server_shard.hpp"
#include "run/methods/worker_threads.hpp"
#include "tests/run/difference.hpp"
#include "tests/run/written_out.hpp"

namespace rehearse::run {
namespace {

TEST(Methods, ModelsAreAveragedAfterSomeUpdates) {
    if (ranks() == 8) GTEST_SKIP() << "on 2, 3 and 4 ranks: written out for 8 it takes long, and says nothing more";
    expect_as_written_out({"data:local=1", "data:local=3", "data:local=2:bucket=1kB"});
    expect_as_written_out({"data:local=2"}, Optimizer::adam);
}

// Bernstein et al. 2018: of 2, 3 and 4 votes, with ties and without; one bucket and several. A network without
// normalization: behind it the gradient of a bias is 0, and its sign rounding.
TEST(Methods, RanksVoteOnSigns) {
    if (ranks() == 8) GTEST_SKIP() << "on 2, 3 and 4 ranks: written out for 8 it takes long, and says nothing more";
    expect_as_written_out({"data:signs=vote", "data:signs=vote:bucket=1kB"}, Optimizer::sgd, {test::dropping()});
    expect_as_written_out({"data:signs=vote"}, Optimizer::adam, {test::dropping()});
}

// Liu et al. 2019, algorithm 1 with xi = 0. Beside a tensor axis each rank has all shares.
TEST(Methods, OperatorsSharesAreTrainedInTurnWithWeights) {
    if (ranks() == 3 || ranks() == 8) GTEST_SKIP() << "on 2 and 4 ranks";
    expect_as_written_out({"data:bilevel=on", "data:bilevel=on:bucket=1kB"}, Optimizer::sgd, {test::mixed()});
    expect_as_written_out({"data:bilevel=on"}, Optimizer::adam, {test::mixed()});
    if (ranks() == 4) expect_as_written_out({"data=2:bilevel=on,tensor=2"}, Optimizer::sgd, {test::mixed()});
}

// Shares of e^0, e^1 and e^2, of which the first adds nothing.
TEST(Methods, SaysWhichOperatorsHaveMost) {
    const Schedule schedule = test::schedule_of(test::mixed(), "data:bilevel=on", ranks(), 4);
    const RankClass& all = schedule.classes.front();
    std::vector<float> weights;
    for (const Bucket& bucket : all.part.buckets) {
        for (const int layer : bucket.layers) {
            const Op& op = all.part.network.layers[static_cast<std::size_t>(layer)].op;
            if (std::holds_alternative<Parameter>(op)) {
                weights.insert(weights.end(), {0, 1, 2, 0, 2, 1});
            } else {
                weights.resize(weights.size() + static_cast<std::size_t>(parameters(op)), 9);
            }
        }
    }
    const std::vector<MixedOperators> found = mixed_operators(all, weights);
    ASSERT_EQ(found.size(), 2U) << "the third has the shares of the first";
    EXPECT_EQ(found[0].layer, "a.mixed");
    EXPECT_EQ(found[0].operators, (std::vector<std::string>{"dense", "tanh"}));
    const double e = std::exp(1.0), all_three = 1 + e + e * e;
    EXPECT_NEAR(found[0].shares[0], e / all_three, 1e-12);
    EXPECT_NEAR(found[1].shares[0], e * e / all_three, 1e-12);
    EXPECT_NEAR(found[1].shares[1], e / all_three, 1e-12);
}

/// 8 dense layers of 16: there is something for each stage and each rank.
Network tower() {
    Network n{.name = "tower", .layers = {}};
    int at = test::add(n, "input", Input{{16}}, {});
    for (int i = 0; i < 8; ++i) {
        at = test::add(n, "dense" + std::to_string(i), MatMul{.m = 1, .n = 16, .k = 16}, {at});
        if (i % 2 == 0) at = test::add(n, "tanh" + std::to_string(i), Activation{Nonlinearity::tanh, {16}}, {at});
    }
    test::add(n, "loss", SoftmaxLoss{16}, {at});
    return n;
}

// Buckets of a stage, of pieces of layers, of layers beside experts: of each, ranks along data bring together what they
// would of the whole. 2 x 2 and 2 x 2 x 2 ranks.
TEST(Methods, GoWithOtherAxes) {
    if (ranks() != 4 && ranks() != 8) GTEST_SKIP() << "on four and eight ranks";
    const std::string more = ranks() == 8 ? ",tensor=2" : "";
    const std::vector<std::string> methods{"compress=top(0.25)", "compress=1bit", "signs=vote", "allreduce=adasum"};
    std::vector<std::string> plans;
    for (const std::string& method : methods) {
        plans.push_back("pipe=2:microbatches=2,data=2:" + method + more);
        plans.push_back("pipe=2:schedule=pipedream:microbatches=4,data=2:" + method + more);
        if (ranks() == 4) plans.push_back("data=2:lag=1:zero=1:" + method + ",tensor=2");
        // Each copy of a stage has a gradient of its own, of its turns.
        if (ranks() == 4) plans.push_back("pipe=4:copies=2+1+1:microbatches=4,data=1:" + method);
        if (ranks() == 8) plans.push_back("pipe=4:copies=1+2+1:microbatches=4,data=2:" + method);
    }
    for (const char* method : {"kfac=2:damping=0.5", "local=2", "local=2:elastic=0.25"}) {
        const bool cut = std::string_view{method} == "kfac=2:damping=0.5";
        plans.push_back(fmt::format("pipe=2,data={}:{}{}", cut ? ranks() / 2 : 2, method, cut ? "" : more));
        plans.push_back(
            fmt::format("pipe=2:schedule=interleaved,data={}:{}{}", cut ? ranks() / 2 : 2, method, cut ? "" : more));
    }
    for (const std::string& plan : plans) {
        SCOPED_TRACE(plan);
        const float rate = plan.find("kfac") == plan.npos ? 0.01F : 0.001F;
        const Result result = train_checked(tower(), plan, 8, 3, Optimizer::sgd, {.learning_rate = rate});
        EXPECT_LE(result.gradient_error, result.gradient_tolerance);
        EXPECT_LT(result.gradient_tolerance, 1e-3);
    }
}

// Stages of a pipeline that is not drained have weights of earlier updates; what is averaged after the last one is of
// one age, and so is what is pulled after the first.
TEST(Methods, ModelsThatPipelinesTrainAreAveraged) {
    if (ranks() != 4 && ranks() != 8) GTEST_SKIP() << "on 4 and 8 ranks";
    const std::string pipe = fmt::format("pipe={}:schedule=pipedream,data=2:local=", ranks() / 2);
    for (const char* by : {"1", "4", "3:elastic=0.25", "4:elastic=0.25:average_momentum=0.5", "2:bucket=1kB"}) {
        SCOPED_TRACE(by);
        const Result result = train_checked(tower(), pipe + by, 12, 3, Optimizer::sgd, {.learning_rate = 0.02F});
        EXPECT_LE(result.gradient_error, result.gradient_tolerance);
        EXPECT_LT(result.gradient_tolerance, 1e-3);
    }
}

// McMahan et al. 2017, algorithm 1: models weigh as much as the samples that they were trained on.
TEST(Methods, ModelsOfUnevenSharesAreWeighed) {
    if (ranks() != 2) GTEST_SKIP() << "on two ranks";
    for (const char* plan : {"data:shares=1+2:local=2", "data:shares=1+2:local=2:elastic=0.25",
                             "data:shares=1+2:compress=top(0.25)", "pipe=1,data:shares=1+2:compress=1bit"}) {
        SCOPED_TRACE(plan);
        const Result result = train_checked(test::dropping(), plan, 6, 3);
        EXPECT_LE(result.gradient_error, result.gradient_tolerance);
        EXPECT_LT(result.gradient_tolerance, 1e-3);
    }
}

// Maleki et al. 2021, for Adam and LAMB: moments are each rank's own, what its weights have changed by is combined.
TEST(Methods, UpdatesAreCombinedByAdasum) {
    if (ranks() == 8) GTEST_SKIP() << "on 2, 3 and 4 ranks: written out for 8 it takes long, and says nothing more";
    expect_as_written_out({"data:allreduce=adasum:combine=updates"});
    const char* const plan = "data:allreduce=adasum:combine=updates:microbatches=2:bucket=1kB";
    for (const Optimizer optimizer : {Optimizer::adam, Optimizer::lamb}) {
        const Result result = train_checked(test::dropping(), plan, 6, 3, optimizer);
        EXPECT_LE(result.gradient_error, result.gradient_tolerance) << to_string(optimizer);
        EXPECT_LT(result.gradient_tolerance, 0.05) << to_string(optimizer);
    }
    if (ranks() == 4) expect_as_written_out({"pipe=2:microbatches=2,data=2:allreduce=adasum:combine=updates"});
    if (ranks() == 2) {
        expect_as_written_out({"data:allreduce=adasum:combine=updates:bilevel=on"}, Optimizer::adam, {test::mixed()});
        expect_as_written_out({"data:allreduce=adasum:combine=updates:bilevel=on:bucket=1kB"}, Optimizer::sgd,
                              {test::mixed()});
    }
    if (ranks() != 4) return;
    expect_as_written_out({"pipe=2:schedule=pipedream:microbatches=6,data=2:allreduce=adasum:combine=updates"});
    for (const Optimizer optimizer : {Optimizer::sgd, Optimizer::adam}) {
        const char* const copies = "pipe=4:copies=1+2+1:microbatches=4,data=1:allreduce=adasum:combine=updates";
        const Result result = train_checked(tower(), copies, 8, 3, optimizer, {.learning_rate = 0.001F});
        EXPECT_LE(result.gradient_error, result.gradient_tolerance) << to_string(optimizer);
        EXPECT_LT(result.gradient_tolerance, 0.05) << to_string(optimizer);
    }
}

// You et al. 2020: a tensor goes as far as all of it is long, in buckets of several tensors and tensors of several
// pieces. Norms and gradients are summed in another order, by up to 8 ranks: in five steps each weight goes some
// 5 x 0.02 of its tensor's length, and 16 roundings of each part of that are 2e-7 of it.
TEST(Methods, LambUpdatesPiecesAsItDoesWholeTensors) {
    for (const Network& network : {test::dropping(), test::tiny_decoder()}) {
        const auto weights = [&](std::string_view plan, Optimizer optimizer = Optimizer::lamb) {
            const Options options{.steps = 5, .learning_rate = 0.02F, .weight_decay = 0.1F};
            const Schedule schedule = test::schedule_of(network, plan, ranks(), 6, optimizer);
            return train_on(Communicator::world(), schedule, options, {}, {}).weights;
        };
        const std::vector<float> whole = weights("data:bucket=1kB");
        for (const char* plan : {"data:zero=1:bucket=1kB", "data:zero=2:bucket=1kB", "data:zero=3:bucket=1kB",
                                 "data:zero=2:allreduce=tree:bucket=1kB"}) {
            EXPECT_LE(test::difference(weights(plan), whole), 1e-5) << network.name << ", " << plan;
        }
        EXPECT_GT(test::difference(weights("data:bucket=1kB", Optimizer::adam), whole), 1e-2) << "ratios matter";
    }
}

// With several micro-batches, by the gradients of the step before, and of layers that ranks have pieces of: the norms
// of these are sums over two axes, of others over one.
TEST(Methods, LambUpdatesPiecesOfLayersAndStages) {
    std::vector<const char*> plans{"data:zero=3:microbatches=2:bucket=1kB", "data:lag=1:zero=2:bucket=1kB"};
    if (ranks() == 2) plans.insert(plans.end(), {"data:shares=1+2:zero=3:bucket=1kB", "tensor", "tensor:sequence=on"});
    if (ranks() == 4) {
        plans = {"pipe=2:microbatches=2,data=2:zero=2", "data=2:zero=1,context=2", "data=2:zero=2,tensor=2",
                 "data=2,tensor=2:sequence=on"};
    }
    const auto expect_gradients = [](const Network& network, const char* plan, std::int64_t batch) {
        SCOPED_TRACE(network.name + ", " + plan);
        const Options options{.learning_rate = 0.02F, .weight_decay = 0.1F};
        const Result result = train_checked(network, plan, batch, 3, Optimizer::lamb, options);
        EXPECT_LE(result.gradient_error, result.gradient_tolerance);
        EXPECT_LT(result.gradient_tolerance, 1e-3);
    };
    for (const char* plan : plans) expect_gradients(test::tiny_decoder(), plan, ranks() == 4 ? 8 : 6);
    if (ranks() == 2) expect_gradients(test::dropping(), "data:dense=shared", 6);
    if (ranks() != 4) return;
    expect_gradients(test::mixture(), "data=2:zero=1,expert=2", 6);
    expect_gradients(tower(), "pipe=2:schedule=pipedream:microbatches=4,tensor=2", 8);
}

// Adam divides a gradient by its own size. Of a label that is nearly certain, as some are here after two steps, it was
// what rounding had left of p - 1, and another number on two ranks that share the classes than on one.
TEST(Methods, AdamUpdatesByWhatIsLeftToNearlyCertainLabels) {
    if (ranks() != 2) GTEST_SKIP() << "its plan is for 2 ranks";
    const Result result = train_checked(models::mlp(), "tensor=2", 32, 5, Optimizer::adam);
    EXPECT_LE(result.gradient_error, result.gradient_tolerance);
    EXPECT_LT(result.gradient_tolerance, 1e-3);
}

TEST(Methods, ModelsAndTheirAveragePullAtEachOther) {
    if (ranks() == 8) GTEST_SKIP() << "on 2, 3 and 4 ranks: written out for 8 it takes long, and says nothing more";
    expect_as_written_out({"data:local=1:elastic=0.25", "data:local=3:elastic=0.1:bucket=1kB",
                           "data:local=1:elastic=0.25:average_momentum=0.5"});
}

// Koliousis et al. 2019: several models on a rank, and the average of all.
TEST(Methods, LearnersOfARankTrainModelsOfTheirOwn) {
    if (ranks() == 8) GTEST_SKIP() << "on 2, 3 and 4 ranks: written out for 8 it takes long, and says nothing more";
    expect_as_written_out({"data:learners=2", "data:learners=3:elastic=0.1:average_momentum=0.9:bucket=1kB"});
    expect_as_written_out({"data:learners=2:average_momentum=0.5"}, Optimizer::adam);
}

// Equally many parts each, two after the other; or the slow one of three takes what it can.
TEST(Methods, LearnersTakeBatchesAsTheyAreIdle) {
    if (ranks() == 8) GTEST_SKIP() << "on 2, 3 and 4 ranks: written out for 8 it takes long, and says nothing more";
    const auto check = [](std::string_view plan, const Options& options) {
        const Result result = train_checked(test::dropping(), plan, 12, 3, Optimizer::sgd, options);
        EXPECT_LE(result.gradient_error, result.gradient_tolerance) << plan;
        EXPECT_LT(result.gradient_tolerance, 1e-3) << plan;
    };
    check("data:learners=2:local=2", {});
    check("data:learners=3:local=2:average_momentum=0.5:bucket=1kB", {.first_idle = true});
    check("data:learners=2:local=3", {.first_idle = true, .learner_paces = {1, 8}});
}

// Chilimbi et al. 2014: threads of a worker on one model. One thread is local SGD; several lose no more of a step's
// updates than they have under way at the same time.
TEST(Methods, ThreadsUpdateOneModelWithoutLocks) {
    if (ranks() > 3) GTEST_SKIP() << "on 2 and 3 ranks";
    const Network network = test::dropping();
    Options options{.momentum = 0};
    const std::vector<float> local = train_checked(network, "data:local=3", 6, 3, Optimizer::sgd, options).weights;
    options.unlocked = 1;
    const Result alone = train_checked(network, "data:local=3", 6, 3, Optimizer::sgd, options);
    EXPECT_LE(alone.gradient_error, alone.gradient_tolerance);
    EXPECT_LT(alone.gradient_tolerance, 1e-3);
    ASSERT_EQ(alone.weights.size(), local.size());
    for (std::size_t i = 0; i < local.size(); ++i) EXPECT_NEAR(alone.weights[i], local[i], 1e-6);
    options.unlocked = 3;
    const Result several = train_checked(network, "data:local=3", 6, 3, Optimizer::sgd, options);
    EXPECT_LE(several.gradient_error, several.gradient_tolerance);
    EXPECT_NE(several.weights, local);  // gradients at the same weights, not one after the other
}

/// `threads` of them make `times` additions of ones and twos to a vector; what each element then is.
std::vector<float> added_together(int threads, int times, bool apart) {
    std::vector<float> shared(64);
    const std::vector<float> ones(shared.size(), 1);
    {
        std::vector<std::jthread> all;
        for (int t = 0; t < threads; ++t) {
            all.emplace_back([&, t] {
                const std::size_t size = apart ? shared.size() / static_cast<std::size_t>(threads) : shared.size();
                const std::size_t from = apart ? static_cast<std::size_t>(t) * size : 0;
                for (int i = 0; i < times; ++i) {
                    add_unlocked(std::span{shared}.subspan(from, size), std::span{ones}.subspan(from, size), 2);
                }
            });
        }
    }
    return shared;
}

// Whole numbers: exact sums where no two threads meet in an element; where they meet, additions may be lost, but what
// one of them has stored last is there.
TEST(Unlocked, AddsUpExactlyWhereNoTwoMeet) {
    if (ranks() != 2) GTEST_SKIP() << "threads of one rank";
    EXPECT_EQ(added_together(4, 1000, true), std::vector<float>(64, 2000));
    for (const float sum : added_together(4, 1000, false)) {
        EXPECT_GE(sum, 2);
        EXPECT_LE(sum, 8000);
        EXPECT_EQ(std::fmod(sum, 2.0F), 0);
    }
    std::vector<float> copy(3), values{1, 2, 3};
    read_unlocked(values, copy);
    EXPECT_EQ(copy, values);
}

TEST(Methods, TensorRanksAverageTheirPieces) {
    if (ranks() != 4) GTEST_SKIP() << "data=2,tensor=2 is for four ranks";
    const Result result = train_checked(test::dropping(), "data=2:local=2,tensor=2", 6, 3);
    EXPECT_LE(result.gradient_error, result.gradient_tolerance);
}

// Otherwise the checks above would let pass what does nothing.
TEST(Methods, LeadElsewhereThanSums) {
    if (ranks() != 2) GTEST_SKIP() << "compares plans with each other: on two ranks";
    const std::vector<float> sums = train_checked(test::dropping(), "data:microbatches=2", 6, 3).weights;
    const std::vector<float> local = train_checked(test::dropping(), "data:local=2", 6, 3).weights;
    const std::vector<float> elastic = train_checked(test::dropping(), "data:local=2:elastic=0.5", 6, 3).weights;
    const std::vector<float> few =
        train_checked(test::dropping(), "data:microbatches=2:compress=top(0.1)", 6, 3).weights;
    EXPECT_NE(sums, local);
    EXPECT_NE(local, elastic);
    EXPECT_NE(sums, few);
}

// All of the largest elements are all elements: but for the order of additions it is the sum.
TEST(Methods, AllOfTheLargestGradientsAreTheSum) {
    if (ranks() != 2) GTEST_SKIP() << "compares plans with each other: on two ranks";
    const std::vector<float> sums = train_checked(test::dropping(), "data", 6, 3).weights;
    const std::vector<float> all = train_checked(test::dropping(), "data:compress=top(1)", 6, 3).weights;
    ASSERT_EQ(sums.size(), all.size());
    for (std::size_t i = 0; i < sums.size(); ++i) EXPECT_NEAR(all[i], sums[i], 1e-6);
}

TEST(Methods, FewBitsOfGradientsAndTheRestLater) {
    if (ranks() != 2 && ranks() != 4) GTEST_SKIP() << "of two and four ranks: means over them are exact";
    expect_as_written_out(
        {"data:compress=top(0.05)", "data:compress=1bit:bucket=1kB", "data:compress=top(0.2):microbatches=2"});
}

TEST(Methods, RefuseWhatIsNotExecuted) {
    const auto refusal = [](std::string_view plan, const Options& options = {}) {
        try {
            train_checked(test::dropping(), plan, 6, 1, Optimizer::sgd, options);
        } catch (const InputError& error) {
            return std::string{error.what()};
        }
        return std::string{"nothing"};
    };
    if (ranks() != 3) GTEST_SKIP() << "its plans are for three ranks";
    EXPECT_THAT(refusal("server=2:copies=2,data=1"), testing::HasSubstr("leave out place and copies"));
    EXPECT_THAT(refusal("server=1,data=1:kfac=1,tensor=2"),
                testing::HasSubstr("kfac with server and layers that ranks share"));
    EXPECT_THAT(refusal("data:local=2", {.unlocked = 2}), testing::HasSubstr("--momentum 0"));
    EXPECT_THAT(refusal("data:local=2", {.unlocked = 3, .momentum = 0}), testing::HasSubstr("3 threads share 2"));
    EXPECT_THAT(refusal("data:learners=2", {.learner_paces = {1}}), testing::HasSubstr("2 numbers"));
    EXPECT_THAT(refusal("data", {.first_idle = true}), testing::HasSubstr("has none"));
}

TEST(Compression, SendsTheLargestAndKeepsTheRest) {
    std::vector<float> values{0.5F, -3, 0, 2, -2, 1};
    std::vector<float> words(4), sum(6, 1.0F);
    const Compression top{Compression::Kind::top, 0.33};
    ASSERT_EQ(compressed_words(top, 6), 4);
    compress(top, values, words);
    EXPECT_EQ(values, (std::vector<float>{0.5F, 0, 0, 0, -2, 1}));  // of equal ones the first is sent
    EXPECT_EQ(std::bit_cast<std::uint32_t>(words[0]), 1U);
    EXPECT_EQ(std::bit_cast<std::uint32_t>(words[1]), 3U);
    add_compressed(top, words, sum);
    EXPECT_EQ(sum, (std::vector<float>{1, -2, 1, 3, 1, 1}));
}

TEST(Compression, SendsSignsAndTwoMeans) {
    std::vector<float> values(70, 1.0F);
    values[0] = 3;  // 68 numbers above 0: 67 ones and a three
    values[33] = -1;
    values[69] = -2;
    const std::vector<float> before = values;
    const Compression bits{Compression::Kind::one_bit, 0};
    ASSERT_EQ(compressed_words(bits, 70), 5);
    std::vector<float> words(5), sum(70);
    compress(bits, values, words);
    EXPECT_FLOAT_EQ(words[0], 70.0F / 68);
    EXPECT_FLOAT_EQ(words[1], -1.5F);
    EXPECT_EQ(std::bit_cast<std::uint32_t>(words[3]), 2U);   // the second of 32 to 63
    EXPECT_EQ(std::bit_cast<std::uint32_t>(words[4]), 32U);  // the sixth of 64 to 69
    add_compressed(bits, words, sum);
    for (std::size_t i = 0; i < sum.size(); ++i) EXPECT_NEAR(sum[i] + values[i], before[i], 1e-6);
}

}  // namespace
}  // namespace rehearse::run
