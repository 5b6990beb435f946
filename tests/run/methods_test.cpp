// SPDX-License-Identifier: Apache-2.0
// Methods that do more than sum gradients: models of the ranks' own and their averages, gradients in fewer bits,
// parameter servers, K-FAC. Each training is held to what it means, written out for one rank (run/reference). Run under
// mpirun with 2, 3, 4 and 8 ranks.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include <bit>
#include <cmath>
#include <numeric>
#include <thread>

#include "core/error.hpp"
#include "run/methods/architecture.hpp"
#include "run/methods/averaging.hpp"
#include "run/methods/compression.hpp"
#include "run/methods/factors.hpp"
#include "run/methods/server_shard.hpp"
#include "run/methods/worker_threads.hpp"
#include "run/trainer.hpp"
#include "tests/kernels/comm/mpi_main.hpp"
#include "tests/run/networks.hpp"

namespace rehearse::run {
namespace {

using kernels::Communicator;

Result train_checked(const Network& network, std::string_view plan, std::int64_t batch, int steps,
                     Optimizer optimizer = Optimizer::sgd, Options options = {}) {
    const Communicator world = Communicator::world();
    const Schedule schedule = test::schedule_of(network, plan, world.size(), batch, optimizer);
    options.steps = steps;
    options.check_gradients = true;
    if (options.learning_rate == Options{}.learning_rate) options.learning_rate = default_learning_rate(optimizer);
    options.single_rank =
        std::make_shared<const Schedule>(test::schedule_of(network, "data", 1, micro_batch_size(schedule), optimizer));
    return train_on(world, schedule, options, {}, {});
}

// Adam's first steps are as long where a gradient is rounding as where it is one: what is allowed then is more.
void expect_as_written_out(const std::vector<const char*>& plans, Optimizer optimizer = Optimizer::sgd,
                           const std::vector<Network>& networks = {test::branches(), test::dropping()}) {
    const double most = optimizer == Optimizer::adam ? 0.05 : 1e-3;
    for (const Network& network : networks) {
        for (const char* plan : plans) {
            SCOPED_TRACE(network.name + ", " + plan);
            const Result result = train_checked(network, plan, 6, 3, optimizer);
            EXPECT_LE(result.gradient_error, result.gradient_tolerance);
            EXPECT_LT(result.gradient_tolerance, most);
        }
    }
}

std::int64_t ranks() { return Communicator::world().size(); }

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

TEST(Methods, ServersUpdateInTheOrderInWhichGradientsCome) {
    if (ranks() == 2) GTEST_SKIP() << "its plans are for 3, 4 and 8 ranks";
    if (ranks() == 3) expect_as_written_out({"server=1,data=2", "server=2,data=1", "server=1,data:bucket=1kB"});
    if (ranks() == 4) expect_as_written_out({"server=2,data=2:bucket=1kB", "server=1,data=3:microbatches=2"});
    if (ranks() == 4) expect_as_written_out({"server=1,data=3"}, Optimizer::adam);
    if (ranks() == 8) expect_as_written_out({"server=2,data=6:bucket=1kB"});
}

// Chilimbi et al. 2014: the server multiplies the inputs and errors of 6 samples, which are fewer than the weights.
TEST(Methods, ServersMakeGradientsOfDenseLayersThemselves) {
    if (ranks() == 3) expect_as_written_out({"server=1:dense=vectors,data=2"});
    if (ranks() == 4) expect_as_written_out({"server=2:dense=vectors,data=2:bucket=1kB"}, Optimizer::adam);
    if (ranks() == 2 || ranks() == 8) GTEST_SKIP() << "its plans are for 3 and 4 ranks";
}

// Zhang et al. 2015, asynchronous: no model waits for another, the average is whatever the servers have by then.
TEST(Methods, ModelsPullAtAnAverageThatServersKeep) {
    if (ranks() == 2) GTEST_SKIP() << "its plans are for 3, 4 and 8 ranks";
    if (ranks() == 3)
        expect_as_written_out({"server=1,data=2:local=2:elastic=0.3", "server=2,data=1:local=1:elastic=0.5"});
    if (ranks() == 4) expect_as_written_out({"server=2,data=2:local=1:elastic=0.25:bucket=1kB"}, Optimizer::adam);
    if (ranks() == 8) expect_as_written_out({"server=2,data=6:local=3:elastic=0.1:bucket=1kB"});
}

// Groups of two: sums of two gradients have the same bits in any order, and the servers' order differs from run to run.
TEST(Methods, GroupsSumAndTheirFirstRankPushes) {
    if (ranks() != 3 && ranks() != 8) GTEST_SKIP() << "its plans are for 3 and 8 ranks";
    if (ranks() == 3) expect_as_written_out({"server=1,groups=1,data=2"});
    if (ranks() == 8) {
        expect_as_written_out({"server=2,groups=3,data=2:bucket=1kB", "server=4,groups=2,data=2:bucket=1B"});
    }
}

// Each of three steps of each worker updates each bucket once; one rank alone never finds others' updates.
TEST(Methods, EveryUpdateIsWrittenDown) {
    if (ranks() != 3 && ranks() != 4) GTEST_SKIP() << "of three and four ranks";
    const Network network = test::dropping();
    const std::int64_t workers = ranks() - 1;
    const Result result = train_checked(network, "server=1,data", 6, 3);
    const Schedule schedule = test::schedule_of(network, "server=1,data", ranks(), 6);
    const auto buckets = static_cast<std::int64_t>(schedule.classes[0].part.buckets.size());
    EXPECT_EQ(std::accumulate(result.staleness.begin(), result.staleness.end(), std::int64_t{0}),
              3 * workers * buckets);
    if (ranks() != 3) return;
    EXPECT_EQ(train_checked(network, "server=2,data=1", 6, 3).staleness.size(), 1U);
}

// Martens and Grosse 2015 over ranks: the same directions as from plain sums and elimination on one. Two of
// dropping()'s layers are dense, one of branches()', beside three convolutions.
TEST(Curvature, GivesTheDirectionsOfOneRank) {
    if (ranks() == 2) expect_as_written_out({"data:kfac=2:damping=1"}, Optimizer::adam);
    if (ranks() == 3) expect_as_written_out({"data:kfac=3:damping=1:bucket=1kB"});
    if (ranks() == 4) expect_as_written_out({"data:kfac=1:damping=1"});
}

/// Two classes, drawn by a logistic model of three features, whose deviations are 1, 0.1 and 0.01.
struct IllConditioned {
    static constexpr std::size_t samples = 512, features = 3;
    std::vector<float> inputs, labels;
    std::vector<double> weights = std::vector<double>(features);  // of class 1 less class 0

    IllConditioned() {
        std::uint64_t state = 1;
        const auto draw = [&state] {  // Knuth's MMIX generator
            state = state * 6364136223846793005ULL + 1442695040888963407ULL;
            return static_cast<double>(state >> 11U) * 0x1p-53;
        };
        for (std::size_t i = 0; i < samples; ++i) {
            double score = 0;
            for (const double scale : {1.0, 0.1, 0.01}) {
                const double normed = 2 * draw() - 1;
                inputs.push_back(static_cast<float>(scale * normed));
                score += 2 * normed;
            }
            labels.push_back(draw() < 1 / (1 + std::exp(-score)) ? 1.0F : 0.0F);
        }
    }
    /// The loss; errors of each sample, and the gradient.
    double loss(std::vector<float>& errors, std::vector<double>& gradient) const {
        double sum = 0;
        gradient.assign(features, 0);
        errors.clear();
        for (std::size_t i = 0; i < samples; ++i) {
            double score = 0;
            for (std::size_t f = 0; f < features; ++f) score += weights[f] * inputs[i * features + f];
            const double error = 1 / (1 + std::exp(-score)) - labels[i];
            errors.push_back(static_cast<float>(error));
            sum += std::log(1 + std::exp(labels[i] > 0 ? -score : score)) / samples;
            for (std::size_t f = 0; f < features; ++f) gradient[f] += error * inputs[i * features + f] / samples;
        }
        return sum;
    }
    /// sum of rows times rows, as kernels give it.
    static std::vector<float> products(const std::vector<float>& rows, std::size_t size) {
        std::vector<float> sums(size * size);
        for (std::size_t r = 0; r < rows.size(); r += size) {
            for (std::size_t i = 0; i < size * size; ++i) sums[i] += rows[r + i / size] * rows[r + i % size];
        }
        return sums;
    }
    void step_by_curvature() {
        constexpr double damping = 1e-6;
        std::vector<float> errors, packed(features * (features + 1) / 2), a(features * features), g(1);
        std::vector<double> gradient;
        loss(errors, gradient);
        pack_factor(products(inputs, features), inputs, features, false, 1.0 / samples, packed);
        invert_factor(packed, damping, a);
        pack_factor(products(errors, 1), errors, 1, false, 1.0 / samples, std::span{packed}.first(1));
        invert_factor(std::span<const float>{packed}.first(1), damping, g);
        for (std::size_t i = 0; i < features; ++i) {
            for (std::size_t j = 0; j < features; ++j) weights[i] -= a[i * features + j] * gradient[j] * g[0];
        }
    }
};

// The flattest direction of the loss is 10^4 times as flat as the steepest: gradients of any one size crawl along it.
TEST(Curvature, NeedsFewStepsWhereGradientsNeedThousands) {
    if (ranks() != 2) GTEST_SKIP() << "on one rank it is the same";
    std::vector<float> errors;
    std::vector<double> gradient;
    IllConditioned by_curvature;
    for (int step = 0; step < 15; ++step) by_curvature.step_by_curvature();
    const double reached = by_curvature.loss(errors, gradient);
    IllConditioned best = by_curvature;
    for (int step = 0; step < 200; ++step) best.step_by_curvature();
    const double least = best.loss(errors, gradient);
    EXPECT_LT(reached - least, 1e-5);
    for (const double rate : {0.5, 2.0, 8.0, 12.0, 24.0}) {
        IllConditioned by_gradient;
        for (int step = 0; step < 1500; ++step) {
            by_gradient.loss(errors, gradient);
            for (std::size_t f = 0; f < gradient.size(); ++f) by_gradient.weights[f] -= rate * gradient[f];
        }
        EXPECT_GT(by_gradient.loss(errors, gradient) - least, 1e-3) << "at a rate of " << rate;
    }
}

TEST(Curvature, InvertsAPackedTriangle) {
    std::vector<float> inverse(4);
    invert_factor(std::vector<float>{3, 1, 1}, 1, inverse);  // (4 1; 1 2), of determinant 7
    const std::vector<float> expected{2 / 7.0F, -1 / 7.0F, -1 / 7.0F, 4 / 7.0F};
    for (std::size_t i = 0; i < 4; ++i) EXPECT_FLOAT_EQ(inverse[i], expected[i]);
    std::vector<float> packed(6);  // of inputs (1 2) and (3 4), a bias, and half of all
    pack_factor(std::vector<float>{10, 14, 14, 20}, std::vector<float>{1, 2, 3, 4}, 2, true, 0.5, packed);
    EXPECT_EQ(packed, (std::vector<float>{5, 7, 10, 2, 3, 1}));
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
    EXPECT_THAT(refusal("server=1,data=1,tensor=2"), testing::HasSubstr("tensor beside data"));
    EXPECT_THAT(refusal("data:local=2", {.unlocked = 2}), testing::HasSubstr("--momentum 0"));
    EXPECT_THAT(refusal("data:local=2", {.unlocked = 3, .momentum = 0}), testing::HasSubstr("3 threads share 2"));
    EXPECT_THAT(refusal("data:learners=2", {.learner_paces = {1}}), testing::HasSubstr("2 numbers"));
    EXPECT_THAT(refusal("data", {.first_idle = true}), testing::HasSubstr("has none"));
}

TEST(ElasticServers, MoveTowardsAModelByWhatItGivesUp) {
    std::vector<float> model{4, -2}, average{0, 2};
    pull_average(0.25, model, average);
    EXPECT_EQ(model, (std::vector<float>{1, -1}));
    EXPECT_EQ(average, (std::vector<float>{1, 1}));
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

TEST(Staleness, CountsUpdatesInBetween) {
    // Bucket 0: rank 0, 1, 1, 0: rank 1's first comes after one update, its second after none, rank 0's second after
    // two.
    const RankIndex one{0}, other{1};
    const ServerLogs logs{{{one, 0, 0}, {other, 0, 0}, {other, 1, 0}, {one, 1, 0}}};
    EXPECT_EQ(staleness(logs), (std::vector<std::int64_t>{2, 1, 1}));
}

}  // namespace
}  // namespace rehearse::run

int main(int argc, char** argv) {
    const rehearse::run::Session session{argc, argv};
    return session.run("test", [&] { return rehearse::test::run_on_all_ranks(argc, argv); });
}
