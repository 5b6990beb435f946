// SPDX-License-Identifier: Apache-2.0
// Saved under one plan, taken up under another: each number is where it was. Run under mpirun with 2 and 4 ranks.
#include "run/checkpoint/checkpoint.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <unistd.h>

#include <fstream>
#include <iostream>

#include "core/error.hpp"
#include "core/methods/lag.hpp"
#include "run/checkpoint/held_folder.hpp"
#include "run/trainer.hpp"
#include "tests/run/checkpoints.hpp"
#include "tests/run/networks_of_every_kind.hpp"

namespace rehearse::run {
namespace {

using kernels::Communicator;
using test::expect_equal;
using test::Folder;
using test::scheduled;

Checkpoint trained(const Schedule& schedule, const std::string& folder, int steps, bool resume,
                   float momentum = Options{}.momentum) {
    const Communicator world = Communicator::world();
    const Options options{
        .steps = steps, .learning_rate = 0.01F, .momentum = momentum, .checkpoint = folder, .resume = resume};
    train_on(world, schedule, options, {}, {});
    world.barrier();
    return load(newest(folder).value(), schedule);
}

std::vector<const char*> plans() {
    if (Communicator::world().size() == 2) {
        return {"data",        "pipe:microbatches=2",    "tensor",
                "data:zero=1", "data:zero=2:bucket=1kB", "data:zero=3:bucket=1kB",
                "data:lag=1"};
    }
    return {"data=2,pipe=2:microbatches=2", "data=2:lag=1,tensor=2", "data:zero=2:lag=1"};
}

TEST(Checkpoints, OnTheSamePlanAreTakenUpToTheBit) {
    if (why_no_checkpoints()) GTEST_SKIP() << *why_no_checkpoints();
    for (const char* plan : plans()) {
        for (const Precision precision : {Precision::fp32, Precision::mixed}) {
            SCOPED_TRACE(std::string{plan} + ", " + std::string{to_string(precision)});
            const Schedule schedule = scheduled(plan, Optimizer::adam, precision);
            const Folder at_once, in_two;
            const Checkpoint whole = trained(schedule, at_once.path(), 4, false);
            trained(schedule, in_two.path(), 2, false);
            const Checkpoint resumed = trained(schedule, in_two.path(), 4, true);
            EXPECT_EQ(resumed.steps, 4);
            EXPECT_EQ(resumed.program.updates, whole.program.updates);
            EXPECT_EQ(resumed.program.loss_scale, whole.program.loss_scale);
            expect_equal(whole, resumed);
        }
    }
}

// Columns of dense layers and tables lie on one data rank each, and of sums that lag keeps each has one first rank: all
// of them are saved, and taken up once.
TEST(Checkpoints, OfWhatDataRanksHaveOfTheirOwnAreWhole) {
    if (why_no_checkpoints()) GTEST_SKIP() << *why_no_checkpoints();
    const auto scheduled = [](const Network& network, const char* plan) {
        return test::schedule_of(network, plan, Communicator::world().size(), 8);
    };
    const std::vector<std::pair<Network, const char*>> cases{{test::tower(), "data:dense=shared"},
                                                             {test::tower(), "data:dense=shared:lag=1"},
                                                             {test::tiny_dlrm(4), "data:tables=shared"},
                                                             {test::mixture(), "data=1:lag=1,expert"}};
    for (const auto& [network, plan] : cases) {
        SCOPED_TRACE(fmt::format("{}, {}", network.name, plan));
        const Schedule schedule = scheduled(network, plan);
        const Folder at_once, in_two, copied;
        const Checkpoint whole = trained(schedule, at_once.path(), 4, false, 0);
        trained(schedule, in_two.path(), 2, false, 0);
        expect_equal(whole, trained(schedule, in_two.path(), 4, true, 0));
        const bool lags = schedule.methods.get<Lag>().steps > 0;
        const Checkpoint same = trained(scheduled(network, lags ? "data:lag=1" : "data"), copied.path(), 4, false, 0);
        for (std::size_t i = 0; i < whole.layers.size(); ++i) {  // sums of 16 terms of about 1, in another order
            EXPECT_THAT(whole.layers[i].weights, testing::Pointwise(testing::FloatNear(1e-4F), same.layers[i].weights));
        }
    }
}

// The first stage only flattens: rank 0 has no weights, and has counted no updates.
TEST(Checkpoints, OfAStageWithoutWeightsCountTheUpdatesOfTheOthers) {
    if (why_no_checkpoints()) GTEST_SKIP() << *why_no_checkpoints();
    if (Communicator::world().size() != 2) GTEST_SKIP() << "two stages";
    Network network{.name = "flattened", .layers = {}};
    int last = test::add(network, "input", Input{{2, 4, 4}}, {});
    last = test::add(network, "flatten", Flatten{{2, 4, 4}}, {last});
    last = test::add(network, "fc", MatMul{.m = 1, .n = 10, .k = 32, .bias = true}, {last});
    test::add(network, "loss", SoftmaxLoss{10}, {last});
    for (const Optimizer optimizer : {Optimizer::adam, Optimizer::lamb}) {
        const Schedule schedule = test::schedule_of(network, "pipe=2:cut=flatten", 2, 8, optimizer);
        const Folder at_once, in_two;
        const Checkpoint whole = trained(schedule, at_once.path(), 4, false);
        EXPECT_EQ(whole.program.updates, 4);
        trained(schedule, in_two.path(), 2, false);
        expect_equal(whole, trained(schedule, in_two.path(), 4, true));
    }
}

// Rows of shared tables are updated as their gradients are made: of them there are no moments, and a plan that keeps
// some begins with zeros.
TEST(Checkpoints, HaveMomentsOfWhatTheOptimizerKeeps) {
    if (why_no_checkpoints()) GTEST_SKIP() << *why_no_checkpoints();
    const auto scheduled = [](const char* plan) {
        return test::schedule_of(test::tiny_dlrm(4), plan, Communicator::world().size(), 8, Optimizer::adam);
    };
    const Folder folder;
    const Checkpoint shared = trained(scheduled("data:tables=shared"), folder.path(), 2, false, 0);
    int tables = 0;
    for (const LayerState& layer : shared.layers) {
        const bool moments = !layer.momentum.empty();
        tables += !layer.weights.empty() && !moments ? 1 : 0;
        EXPECT_EQ(moments, !layer.second_moment.empty());
    }
    EXPECT_GT(tables, 0);
    const Checkpoint read = load(newest(folder.path()).value(), scheduled("data"));
    for (std::size_t i = 0; i < read.layers.size(); ++i) {
        EXPECT_EQ(read.layers[i].weights, shared.layers[i].weights);
        EXPECT_EQ(read.layers[i].momentum.size(), read.layers[i].weights.size());
        if (shared.layers[i].momentum.empty()) {
            EXPECT_THAT(read.layers[i].second_moment, testing::Each(0.0F));
        }
    }
    Communicator::world().barrier();
    trained(scheduled("data"), folder.path(), 3, true, 0);
    const Checkpoint back = trained(scheduled("data:tables=shared"), folder.path(), 4, true, 0);
    EXPECT_EQ(back.steps, 4);
}

// Of two jobs in one folder the second would remove what the first is writing.
TEST(Checkpoints, OfTwoRunsAreNotInOneFolder) {
    if (why_no_checkpoints()) GTEST_SKIP() << *why_no_checkpoints();
    const Folder folder;
    if (Communicator::world().rank() != 0) return;
    const Schedule schedule = test::schedule_of(test::branches(), "data", 1, 4);
    const std::string inner = folder.path() + "/a/b";
    const Options options{.steps = 1, .checkpoint = inner};
    {
        const HeldFolder other{inner};
        EXPECT_THAT([&] { train_on(Communicator::self(), schedule, options, {}, {}); },
                    testing::ThrowsMessage<InputError>(testing::HasSubstr("another run saves there")));
    }
    train_on(Communicator::self(), schedule, options, {}, {});
    EXPECT_TRUE(std::filesystem::exists(inner + "/step-000001.h5"));
}

// What LAMB corrects its moments by counts updates, of the norms as of the steps.
TEST(Checkpoints, OfPiecesUpdatedByLambAreTakenUpToTheBit) {
    if (why_no_checkpoints()) GTEST_SKIP() << *why_no_checkpoints();
    for (const Precision precision : {Precision::fp32, Precision::mixed}) {
        const Schedule schedule = scheduled("data:zero=2:bucket=1kB", Optimizer::lamb, precision);
        const Folder at_once, in_two;
        const Checkpoint whole = trained(schedule, at_once.path(), 4, false);
        trained(schedule, in_two.path(), 2, false);
        expect_equal(whole, trained(schedule, in_two.path(), 4, true));
    }
}

// The state itself moves without a change; what is trained after that differs by the order of sums.
TEST(Checkpoints, OnAnotherPlanHaveTheSameNumbers) {
    if (why_no_checkpoints()) GTEST_SKIP() << *why_no_checkpoints();
    const Communicator world = Communicator::world();
    const Schedule first = scheduled(world.size() == 2 ? "data:zero=1" : "data=2,tensor=2");
    const Folder folder;
    Checkpoint saved = trained(first, folder.path(), 2, false);
    for (const char* plan : {"data", "tensor=2,data", "pipe=2:microbatches=2,data", "data:zero=2"}) {
        SCOPED_TRACE(plan);
        const Schedule schedule = scheduled(plan);
        Program program{schedule, RankIndex{world.rank()}, {}, 77, {}};
        scatter(world, schedule, saved, program);
        const Checkpoint again = gather(world, schedule, program);
        if (world.rank() == 0) expect_equal(saved, again);
        world.barrier();
    }
}

TEST(Checkpoints, OfAStoppedJobGoOnToTheBit) {
    if (why_no_checkpoints()) GTEST_SKIP() << *why_no_checkpoints();
    const Communicator world = Communicator::world();
    const Schedule schedule = scheduled("data");
    const Folder at_once, stopped;
    const Checkpoint whole = trained(schedule, at_once.path(), 3, false);
    const std::string stop = stopped.path() + "/stop";
    if (world.rank() == 0) std::ofstream{stop};
    world.barrier();
    Options options{.steps = 3, .learning_rate = 0.01F, .checkpoint = stopped.path(), .checkpoint_every = 100};
    options.stop_file = stop;
    const Result result = train_on(world, schedule, options, {}, {});
    EXPECT_EQ(result.steps.size(), 1U);
    EXPECT_EQ(result.samples, 8 * world.size());
    if (world.rank() == 0) std::filesystem::remove(stop);
    world.barrier();
    options.resume = true;
    EXPECT_EQ(train_on(world, schedule, options, {}, {}).first_step, 1);
    world.barrier();
    expect_equal(whole, load(newest(stopped.path()).value(), schedule));
}

TEST(Checkpoints, AreNeverOverwrittenUnasked) {
    if (why_no_checkpoints()) GTEST_SKIP() << *why_no_checkpoints();
    const Communicator world = Communicator::world();
    const Schedule schedule = test::schedule_of(test::branches(), "data", 1, 4);
    if (world.rank() != 0) return;
    const Communicator self = Communicator::self();
    char name[] = "/tmp/rehearse_checkpoint_XXXXXX";
    ASSERT_NE(mkdtemp(name), nullptr);
    const auto says = [&](Options options) -> std::string {
        options.checkpoint = options.checkpoint.empty() ? name : options.checkpoint;
        try {
            train_on(self, schedule, options, {}, {});
        } catch (const InputError& error) {
            return error.what();
        }
        return "";
    };
    using testing::HasSubstr;
    EXPECT_EQ(says({.steps = 3}), "");
    EXPECT_THAT(says({.steps = 4}), HasSubstr("there is step-000003.h5 already; --resume goes on from it"));
    EXPECT_THAT(says({.steps = 3, .resume = true}), HasSubstr("has 3 steps already"));
    EXPECT_THAT(says({.steps = 4, .seed = 2, .resume = true}), HasSubstr("--seed 1, not 2"));
    const Schedule larger = test::schedule_of(test::branches(), "data", 1, 8);
    EXPECT_THAT([&] { train_on(self, larger, {.steps = 4, .checkpoint = name, .resume = true}, {}, {}); },
                testing::ThrowsMessage<InputError>(HasSubstr("trained with 4 samples a step, not 8")));
    EXPECT_FALSE(std::filesystem::exists(std::string{name} + "/step-000001.h5")) << "the newest two are kept";
    EXPECT_TRUE(std::filesystem::exists(std::string{name} + "/step-000002.h5"));
    std::filesystem::resize_file(std::string{name} + "/step-000003.h5", 100);
    EXPECT_THAT(says({.steps = 4, .resume = true}), HasSubstr("step-000003.h5: not an HDF5 file, or not a whole one"));
    EXPECT_THAT(says({.steps = 4, .checkpoint = std::string{name} + "/step-000002.h5"}), HasSubstr("is a file"));
    EXPECT_THAT(says({.steps = 4, .checkpoint = "/dev/null/at/all"}), HasSubstr("no folder that can be written to"));
    std::filesystem::remove_all(name);
}

/// What all ranks of a job with states of their own have after `steps`.
RankStates trained_apart(std::string_view plan, Optimizer optimizer, const std::string& folder, int steps,
                         bool resume) {
    const Communicator world = Communicator::world();
    const Schedule schedule = test::schedule_of(test::branches(), plan, world.size(), 8, optimizer);
    const Options options{
        .steps = steps, .learning_rate = 0.01F, .checkpoint = folder, .checkpoint_every = 2, .resume = resume};
    train_on(world, schedule, options, {}, {});
    world.barrier();
    return load(newest(folder).value(),
                RankStates{.network = schedule.network.name,
                           .optimizer = std::string{to_string(optimizer)},
                           .plan = schedule.plan,
                           .ranks = std::vector<std::vector<float>>(static_cast<std::size_t>(world.size()))});
}

// One trading rank, so that servers take its gradients in one order only.
TEST(Checkpoints, OfRanksWithStatesOfTheirOwnAreTakenUpToTheBit) {
    if (why_no_checkpoints()) GTEST_SKIP() << *why_no_checkpoints();
    std::vector<const char*> plans{"data:local=2:elastic=0.2:average_momentum=0.5:bucket=1kB",
                                   "data:learners=2:average_momentum=0.9", "data:compress=top(0.1)"};
    if (Communicator::world().size() == 2) {
        plans.insert(plans.end(), {"server=1,data", "server=1,data:local=2:elastic=0.3"});
    } else {
        plans = {"server=3,data:bucket=1kB", "server=2,groups=1,data=2"};
    }
    Optimizer optimizer = Optimizer::sgd;  // one and the other in turn
    for (const char* plan : plans) {
        SCOPED_TRACE(plan);
        const Folder at_once, in_two;
        const RankStates whole = trained_apart(plan, optimizer, at_once.path(), 5, false);
        trained_apart(plan, optimizer, in_two.path(), 3, false);
        const RankStates resumed = trained_apart(plan, optimizer, in_two.path(), 5, true);
        EXPECT_EQ(resumed.steps, 5);
        EXPECT_FALSE(whole.ranks.front().empty());
        EXPECT_EQ(resumed.ranks, whole.ranks);
        optimizer = optimizer == Optimizer::sgd ? Optimizer::adam : Optimizer::sgd;
    }
}

// K-FAC's factors are made anew in each step: its state is the network's.
TEST(Checkpoints, OfCurvatureAreTakenUpToTheBit) {
    if (why_no_checkpoints()) GTEST_SKIP() << *why_no_checkpoints();
    const Schedule schedule = scheduled("data:kfac=2:damping=1");
    const Folder at_once, in_two;
    const Checkpoint whole = trained(schedule, at_once.path(), 3, false);
    trained(schedule, in_two.path(), 2, false);
    expect_equal(whole, trained(schedule, in_two.path(), 3, true));
}

TEST(Checkpoints, OfOtherPlansAreRefusedWhereRanksHaveStatesOfTheirOwn) {
    if (why_no_checkpoints()) GTEST_SKIP() << *why_no_checkpoints();
    if (Communicator::world().size() != 2) GTEST_SKIP() << "plans of two ranks";
    // Rank 0 reads the file and is refused; on one rank nobody waits for it.
    const Communicator self = Communicator::self();
    const auto train = [&](std::string_view plan, const std::string& folder, int steps, bool resume) {
        const Options options{.steps = steps, .checkpoint = folder, .resume = resume};
        train_on(self, test::schedule_of(test::branches(), plan, 1, 8), options, {}, {});
    };
    const auto refusal = [&](std::string_view before, std::string_view after) {
        const std::string path = testing::TempDir() + fmt::format("rank_states_{}", ::getpid());
        std::filesystem::remove_all(path);
        std::string why = "nothing";
        train(before, path, 1, false);
        try {
            train(after, path, 2, true);
        } catch (const InputError& error) {
            why = error.what();
        }
        std::filesystem::remove_all(path);
        return why;
    };
    EXPECT_THAT(refusal("data:local=2", "data:local=4"), testing::HasSubstr("of plan 'data=1:local=2', not of"));
    EXPECT_THAT(refusal("data:local=2", "data"), testing::HasSubstr("only that plan goes on"));
    EXPECT_THAT(refusal("data", "data:local=2"), testing::HasSubstr("has one network's state"));
}

}  // namespace
}  // namespace rehearse::run
