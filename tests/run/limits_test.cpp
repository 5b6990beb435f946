// SPDX-License-Identifier: Apache-2.0
#include "run/limits.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <cmath>
#include <set>

#include "core/error.hpp"
#include "core/index.hpp"
#include "run/program.hpp"
#include "tests/run/networks.hpp"

namespace rehearse::run {
namespace {

Options plain() { return {.momentum = 0}; }

/// What holds first of a plan; empty: it is run.
std::string limit_of(const Schedule& schedule, const Options& options = plain(), std::string_view device = "cpu") {
    const Asked asked{schedule, options, device};
    const Limit* const limit = first_limit(asked);
    return limit == nullptr ? "" : std::string{limit->what};
}

struct Case {
    std::string what;  // how the row begins
    Schedule schedule;
    Options options = plain();
    std::string device = "cpu";
};

Network two_inputs() {
    Network n{.name = "two-inputs", .layers = {}};
    int at = test::add(n, "a", Input{{4}}, {});
    for (const char* name : {"fc1", "fc2", "fc3"}) at = test::add(n, name, MatMul{.m = 1, .n = 4, .k = 4}, {at});
    const int b = test::add(n, "b", Input{{4}}, {}), sum = test::add(n, "sum", Add{{4}, 2}, {at, b});
    test::add(n, "loss", SoftmaxLoss{3}, {test::add(n, "fc", MatMul{.m = 1, .n = 3, .k = 4}, {sum})});
    return n;
}

// As the import of a file leaves what no kernel does.
Network sorting() {
    Network n{.name = "sorting", .layers = {}};
    const int input = test::add(n, "input", Input{{4}}, {});
    const int sorted = test::add(n, "largest", Rearrangement{"pack", {{4}}, {2}}, {input});
    n.layers[at(sorted)].given = std::make_shared<const Given>(Given{.not_run = "no kernel sorts"});
    test::add(n, "loss", SoftmaxLoss{3}, {test::add(n, "fc", MatMul{.m = 1, .n = 3, .k = 2}, {sorted})});
    return n;
}

// The ids come first, the table that they are looked up in last.
Network late_table() {
    Network n{.name = "late-table", .layers = {}};
    const int input = test::add(n, "input", Input{{64}}, {}), ids = test::add(n, "ids", Input{{6}, 50}, {});
    int at = test::add(n, "fc1", MatMul{.m = 1, .n = 64, .k = 64}, {input});
    at = test::add(n, "fc2", MatMul{.m = 1, .n = 4, .k = 64}, {at});
    const int tables = test::add(n, "tables", EmbeddingBag{2, 3, 50, 4}, {ids});
    at = test::add(n, "interaction", Interaction{3, 4}, {at, tables});
    test::add(n, "loss", SoftmaxLoss{2}, {test::add(n, "scores", MatMul{.m = 1, .n = 2, .k = 7}, {at})});
    return n;
}

Schedule loading() {
    Schedule schedule = test::schedule_of(test::dropping(), "data", 1, 4);
    schedule.classes[0].steps.push_back({"load", Stream::io, Load{"nvme", Bytes{1}}, {}});
    return schedule;
}

Schedule ring() { return test::schedule_of(test::tiny_decoder(), "context=2:ring=on", 2, 4); }

Schedule ring_of_long_values() {
    Schedule schedule = ring();
    for (Layer& layer : schedule.classes[0].part.network.layers) {
        if (auto* op = std::get_if<Attention>(&layer.op)) op->value_size = 2 * op->head_size;
    }
    return schedule;
}

std::vector<Case> cases() {
    using test::schedule_of;
    const Network dropping = test::dropping(), dlrm = test::tiny_dlrm();
    const Network tied = test::tiny_transformer(models::TransformerKind::decoder);
    const auto in = [](Precision precision, const Network& network, std::string_view plan, std::int64_t ranks) {
        return schedule_of(network, plan, ranks, 4, Optimizer::sgd, precision);
    };
    const auto of = [&](std::string_view plan, std::int64_t ranks = 2) {
        return schedule_of(dropping, plan, ranks, 4);
    };
    const Schedule local = of("data:local=2");
    return {
        {"several inputs of one kind", schedule_of(two_inputs(), "pipe=2:microbatches=2:cut=fc2", 2, 4)},
        {"operators of a file in a form", schedule_of(sorting(), "data", 1, 4)},
        {"a pipeline whose later stage", schedule_of(late_table(), "pipe=2:microbatches=2:cut=fc1", 2, 4)},
        {"weights that two stages share", schedule_of(tied, "pipe=2:schedule=pipedream:microbatches=2", 2, 4)},
        {"spatial with batch norm", in(Precision::mixed, test::images(), "spatial=2", 2)},
        {"graphs of many nodes in 16 bits", in(Precision::mixed, models::load_network("gcn-cora"), "data", 1)},
        {"control, variables=whole", of("data:control=star")},
        {"loads from storage", loading()},
        {"schedule=pipedream in 16 bits",
         in(Precision::mixed, dropping, "pipe=2:schedule=pipedream:microbatches=4", 2)},
        {"local, elastic, learners", in(Precision::mixed, dropping, "data:local=2", 2)},
        {"tables=shared in 16 bits", in(Precision::mixed, dlrm, "data=3:tables=shared", 3)},
        {"server with dense=vectors", of("server=1:dense=vectors,data=2:microbatches=2", 3)},
        {"ring=on in 16 bits", in(Precision::mixed, test::tiny_decoder(), "context=2:ring=on", 2)},
        {"ring=on where a layer's values", ring_of_long_values()},
        {"server with dense=vectors and shares", of("server=1:dense=vectors,data=2:shares=3+1", 3)},
        {"server with kfac=N", of("server=1,data=2:kfac=2", 3)},
        {"--precision tf32", in(Precision::tf32, dropping, "data", 2)},
        {"--precision fp8", in(Precision::fp8, dropping, "data", 2)},
        {"server with workers of several ranks", of("server=1,data=1:kfac=1,pipe=2", 3)},
        {"server with place", of("server=2:copies=2,data=1", 3)},
        {"server with quorum", of("server=1:quorum=0.5,data=2", 3)},
        {"elastic with one model", schedule_of(dropping, "data=1:local=2:elastic=0.5", 1, 4)},
        {"tables that ranks do not share", schedule_of(dlrm, "data=2:tables=shared", 2, 4)},
        {"tables=shared with momentum", schedule_of(dlrm, "data=3:tables=shared", 3, 4), {.momentum = 0.9F}},
        {"--save, --save-gradients", local, {.momentum = 0, .save = "trained.h5"}},
        {"--check-gradients of Adam in f16",
         schedule_of(dropping, "data", 1, 4, Optimizer::adam, Precision::fp16),
         {.check_gradients = true}},
        {"--check-gradients with --resume, where bits",
         schedule_of(test::images(), "data=2:signs=vote,spatial=2", 4, 4),
         {.check_gradients = true, .resume = true}},
        {"--check-gradients with --resume, where ranks",
         of("server=1,data=1"),
         {.check_gradients = true, .resume = true}},
        {"--assign, --learner-paces", of("data"), {.first_idle = true}},
        {"learners or --unlocked beside", of("data=1:local=2,tensor=2"), {.unlocked = 2, .momentum = 0}},
        {"learners or --unlocked with shares", of("data:learners=2:shares=3+1")},
        {"learners or --unlocked with shares", of("data=2:local=2:shares=3+1"), {.unlocked = 2, .momentum = 0}},
        {"--unlocked without local", of("data"), {.unlocked = 1, .momentum = 0}},
        {"--unlocked with more threads", local, {.unlocked = 3, .momentum = 0}},
        {"--unlocked with momentum", local, {.unlocked = 2}},
        {"--unlocked with kfac", of("data:local=2:kfac=2"), {.unlocked = 2, .momentum = 0}},
        {"--learner-paces that do not fit", of("data:learners=2"), {.learner_paces = {1}}},
        {"learners on a device", of("data:learners=2"), plain(), "cuda"},
        {"--unlocked on a device", local, {.unlocked = 2, .momentum = 0}, "cuda"},
        {"ring=on on a device", ring(), plain(), "cuda"},
        {"allreduce=adasum beside layers", schedule_of(test::tiny_mixture(), "data=2:allreduce=adasum,expert=2", 4, 4),
         plain(), "cuda"},
        {"combine=updates on a device", of("data:allreduce=adasum:combine=updates"), plain(), "cuda"},
        {"kfac on a device", of("data:kfac=1"), plain(), "cuda"},
        {"schedule=pipedream on a device", of("pipe=2:schedule=pipedream:microbatches=4"), plain(), "cuda"},
        {"a table that two stages share", schedule_of(tied, "pipe=2:schedule=gpipe:microbatches=2", 2, 4), plain(),
         "cuda"},
        {"LAMB of pieces of tensors on a device", schedule_of(dropping, "data=2:zero=1", 2, 4, Optimizer::lamb),
         plain(), "cuda"},
        {"tables=shared on a device", schedule_of(dlrm, "data=3:tables=shared", 3, 4), plain(), "cuda"},
    };
}

TEST(Limits, EachRowIsFoundWhereItHoldsAndSaysWhatAndWhy) {
    std::set<std::string> seen;
    for (const Case& c : cases()) {
        SCOPED_TRACE(c.schedule.plan + ", " + c.what);
        EXPECT_THAT(limit_of(c.schedule, c.options, c.device), testing::StartsWith(c.what));
        seen.insert(limit_of(c.schedule, c.options, c.device));
    }
    for (const Limit& limit : limits()) {
        EXPECT_TRUE(seen.contains(std::string{limit.what})) << "no case for: " << limit.what;
        EXPECT_FALSE(limit.why.empty()) << limit.what;
    }
}

// (1 - beta2) g^2 comes to 2^-25 at g = 2^-10 where beta2 is 31/32, which both floats hold exactly: from there on no
// step is longer than its gradient. What f16 does not keep, or nobody compares, is not refused.
TEST(Limits, AdamIsComparedInF16WhereEpsilonBoundsWhatVanishes) {
    const auto limit = [](Optimizer optimizer, Precision precision, const Options& options) {
        return limit_of(test::schedule_of(test::dropping(), "data", 1, 4, optimizer, precision), options);
    };
    Options options{.second_factor = 31.0F / 32, .epsilon = 0x1p-10F, .check_gradients = true};
    EXPECT_EQ(limit(Optimizer::adam, Precision::fp16, options), "");
    options.epsilon = std::nextafter(0x1p-10F, 0.0F);
    EXPECT_NE(limit(Optimizer::adam, Precision::fp16, options), "");
    EXPECT_EQ(limit(Optimizer::lamb, Precision::fp16, options), "");
    EXPECT_EQ(limit(Optimizer::adam, Precision::mixed, options), "");
    EXPECT_EQ(limit(Optimizer::adam, Precision::pure_bf16, options), "");
    options.check_gradients = false;
    EXPECT_EQ(limit(Optimizer::adam, Precision::fp16, options), "");
}

// Every plan of these on every network: refused by the plan, or by a row of the table, or its ranks' programs are made.
TEST(Limits, ProgramsOfAllThatIsNotRefusedCanBeMade) {
    const std::vector<Network> networks{test::dropping(), test::branches(), test::images(), test::tiny_dlrm(),
                                        test::tiny_transformer(models::TransformerKind::decoder)};
    const std::vector<std::string> methods{"",
                                           ":microbatches=2",
                                           ":local=2",
                                           ":local=2:elastic=0.3",
                                           ":learners=2",
                                           ":compress=top(0.1)",
                                           ":compress=1bit",
                                           ":kfac=1",
                                           ":lag=1",
                                           ":zero=2",
                                           ":zero=3",
                                           ":allreduce=adasum",
                                           ":tables=shared",
                                           ":control=star"};
    const std::vector<std::string> axes{"data=4",
                                        "data=2{},tensor=2",
                                        "data=2{},pipe=2:microbatches=2",
                                        "data=2{},pipe=2:schedule=pipedream:microbatches=2",
                                        "data=2{},spatial=2",
                                        "server=1,data=3{}",
                                        "server=1:dense=vectors,data=3{}",
                                        "server=2,groups=2,data=1{}"};
    int made = 0, refused = 0;
    for (const Network& network : networks) {
        for (const std::string& axis : axes) {
            for (const std::string& method : methods) {
                for (const Precision precision : {Precision::fp32, Precision::mixed}) {
                    const std::string plan = axis == "data=4" ? axis + method : fmt::format(fmt::runtime(axis), method);
                    SCOPED_TRACE(fmt::format("{}, {}, {}", network.name, plan, to_string(precision)));
                    Schedule schedule;
                    try {
                        schedule = test::schedule_of(network, plan, 4, 4, Optimizer::sgd, precision);
                    } catch (const InputError&) {
                        continue;
                    }
                    if (!limit_of(schedule).empty()) {
                        ++refused;
                        continue;
                    }
                    for (RankIndex rank{0}; rank < ranks(schedule.mesh); ++rank) {
                        Program program{schedule, rank, {}, 1, {}};
                        ASSERT_EQ(program.steps().size(), schedule.classes[at(class_of(schedule, rank))].steps.size());
                    }
                    ++made;
                }
            }
        }
    }
    EXPECT_GT(made, 100);
    EXPECT_GT(refused, 100);
}

}  // namespace
}  // namespace rehearse::run
