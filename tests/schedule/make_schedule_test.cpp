// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "core/error.hpp"
#include "models/models.hpp"
#include "tests/schedule/examples.hpp"

namespace rehearse::schedule {
namespace {

using testing::HasSubstr;

constexpr std::int64_t max_int = std::numeric_limits<std::int64_t>::max();

std::string refusal(const Network& network, const Machine& machine, std::string_view plan, const Job& job) {
    try {
        static_cast<void>(make_schedule(network, machine, parse_plan(plan), job));
    } catch (const InputError& error) {
        return error.what();
    }
    return "accepted";
}

TEST(MakeSchedule, RefusesMorePassesThanAScheduleHolds) {
    const Job job{.devices = 2, .batch_per_device = 1'000'000};
    EXPECT_THAT(refusal(residual(), sixes(), "pipe=2:microbatches=1000000", job),
                HasSubstr("1000000 micro-batches through 8 layers are more than the 5000000 passes"));
}

TEST(MakeSchedule, RefusesAPlanThatCannotBeAndSaysWhy) {
    struct Case {
        std::string_view plan;
        Job job;
        std::vector<std::string> fragments;
    };
    const std::vector<Case> cases{
        {"data", {.devices = 0}, {"--devices 0", "at least 1"}},
        {"data", {.devices = -6}, {"--devices -6", "at least 1"}},
        {"data", {.devices = 25}, {"--devices 25", "sixes has only 24", "4 nodes"}},
        {"data", {.devices = 1, .batch_per_device = 0}, {"--batch 0", "at least 1"}},
        {"data", {.devices = 1, .batch_per_device = -32}, {"--batch -32"}},
        {"data", {.devices = 2, .batch_per_device = max_int}, {"too many samples"}},
        {"data", {.devices = 2, .global_batch = 0}, {"--global-batch 0"}},
        {"data", {.devices = 2, .global_batch = -2}, {"--global-batch -2"}},
        {"data", {.devices = 12, .global_batch = 100}, {"100 % 12 = 4", "96 or 108"}},
        {"data", {.devices = 12, .global_batch = 5}, {"5 % 12 = 5", "; 12 would do"}},
        {"data", {.devices = 2, .global_batch = max_int}, {"a step has at most 1000000000 samples"}},
        {"data", {.devices = 1, .global_batch = 1'000'000'001}, {"a step has at most 1000000000 samples"}},
        {"data", {.devices = 2, .batch_per_device = 500'000'001}, {"a step has at most 1000000000"}},
        {"data", {.devices = 2, .global_batch = 999'999'999}, {"% 2 = 1", "; 999999998 or 1000000000 would do"}},
        {"data", {.devices = 3, .global_batch = 1'000'000'000}, {"% 3 = 1", "; 999999999 would do"}},
        // 4,294,967,300 of one sample are 4 in 32 bits.
        {"pipe=2:microbatch=1", {.devices = 2, .batch_per_device = 1'000'001}, {"1000001 micro-batches", "at most"}},
        {"data=8", {.devices = 12}, {"--plan 'data=8'", "8 ranks", "--devices is 12", "data=12"}},
        {"data=2,tensor=3", {.devices = 12}, {"data=2,tensor=3 makes 6 ranks", "--devices is 12"}},
        {"data,tensor", {.devices = 12}, {"data and tensor have no size"}},
        {"data,tensor=5", {.devices = 12}, {"--devices 12 cannot be divided by 5", "data has no size"}},
        {"data,tensor=4", {.devices = 12}, {"no layer that can be cut into 4 equal parts"}},
        {"pipe=5", {.devices = 5, .global_batch = 5}, {"4 layers that compute cannot make 5 stages"}},
        {"data:microbatches=3",
         {.devices = 1, .batch_per_device = 10},
         {"10 % 3 = 1", "; 9 or 12 would do, or microbatches=1"}},
        {"pipe=2:schedule=interleaved:microbatches=3", {.devices = 2}, {"groups of pipe=2", "3 % 2 = 1"}},
        {"data:allreduce=hierarchical(ring,halving)",
         {.devices = 8},
         {"--plan 'data:allreduce=", "8 % 6 = 2", "2 of its 6 devices", "take 6 or 12"}},
    };
    for (const Case& c : cases) {
        SCOPED_TRACE(std::string{c.plan} + " on " + std::to_string(c.job.devices));
        const std::string message = refusal(two_dense(), sixes(), c.plan, c.job);
        for (const std::string& fragment : c.fragments) {
            EXPECT_THAT(message, HasSubstr(fragment));
        }
    }
}

// One rank shares nothing with others: the two stages sum the gradient of their table once a step, as without ZeRO.
TEST(MakeSchedule, LeavesOutWhatAxesOfOneRankWouldShare) {
    const Network network = models::load_network("gpt-h256-a4-l4@128");
    const auto steps_of = [&](std::string_view plan) {
        const Schedule schedule =
            make_schedule(network, sixes(), parse_plan(plan), {.devices = 2, .batch_per_device = 4});
        std::vector<std::string> names{fmt::format("{}", schedule.memory_peak.value)};
        for (const RankClass& rank_class : schedule.classes) {
            for (const Step& step : rank_class.steps) names.push_back(step.name);
        }
        return names;
    };
    const auto plain = steps_of("pipe=2");
    for (const char* plan : {"data=1:zero=1,pipe=2", "data=1:zero=2,pipe=2", "data=1:zero=3,pipe=2", "expert=1,pipe=2",
                             "context=1,pipe=2", "tensor=1,pipe=2"})
        EXPECT_EQ(steps_of(plan), plain) << plan;
    EXPECT_NE(steps_of("data=2:zero=3,pipe=1"), steps_of("data=2,pipe=1"));
}

TEST(MakeSchedule, RefusesHierarchicalOnNodesOfDifferentSizes) {
    Machine machine = sixes();
    machine.nodes = {node_of(6, 1), node_of(4, 3)};
    const std::string plan = "data:allreduce=hierarchical(ring,ring)";
    EXPECT_THAT(refusal(two_dense(), machine, plan, {.devices = 10}), HasSubstr("have 6 devices, others 4"));
    EXPECT_EQ(refusal(two_dense(), machine, plan, {.devices = 6}), "accepted");
}

TEST(MakeSchedule, RefusesANetworkWithoutWeights) {
    Network network;
    network.name = "only-relu";
    add(network, "relu", Activation{Nonlinearity::relu, {3}}, {add(network, "input", Input{{3}}, {})});
    EXPECT_THAT(refusal(network, sixes(), "data", {.devices = 1}), HasSubstr("'only-relu' has no weights"));
}

TEST(MakeSchedule, RefusesANetworkThatDoesNotFitTogether) {
    Network network = two_dense();
    network.layers[3].inputs = {1, 2};
    EXPECT_THAT(refusal(network, sixes(), "data", {.devices = 1}), HasSubstr("layer 'b'"));
}

TEST(MakeSchedule, InfersTheSizeOfTheDataAxis) {
    EXPECT_EQ(schedule_of(two_dense(), "data", 12).plan, "data=12");
    EXPECT_EQ(schedule_of(two_dense(), "data:bucket=1MB", 12).plan, "data=12:bucket=1MB");
    EXPECT_EQ(schedule_of(two_dense(), "data=12:bucket=1MB", 12).plan, "data=12:bucket=1MB");
    EXPECT_EQ(ranks(schedule_of(two_dense(), "data", 12).mesh), 12);
}

TEST(MakeSchedule, DividesAGlobalBatchAmongTheRanks) {
    const Schedule schedule =
        make_schedule(two_dense(), sixes(), parse_plan("data"), {.devices = 6, .global_batch = 48});
    EXPECT_EQ(schedule.batch_per_rank, 8);
    EXPECT_EQ(global_batch(schedule), 48);
    EXPECT_EQ(std::get<Compute>(schedule.classes.at(0).steps.at(0).action).problem.batch, 8);
}

std::string all_reduce_of(const Machine& machine, std::string_view plan, std::int64_t devices) {
    const Schedule schedule = make_schedule(two_dense(), machine, parse_plan(plan), {.devices = devices});
    for (const Step& step : schedule.classes.at(0).steps) {
        if (const auto* reduce = std::get_if<Communicate>(&step.action)) return to_string(reduce->algorithm);
    }
    return "none";
}

TEST(MakeSchedule, ChoosesAnAllReduceThatTheNodesAllow) {
    EXPECT_EQ(all_reduce_of(sixes(), "data", 1), "none");
    EXPECT_EQ(all_reduce_of(sixes(), "data", 4), "ring");
    EXPECT_EQ(all_reduce_of(sixes(), "data", 6), "ring");
    EXPECT_EQ(all_reduce_of(sixes(), "data", 8), "rings") << "the second node is partly filled";
    EXPECT_EQ(all_reduce_of(sixes(), "data", 24), "hierarchical(ring,halving)");
    EXPECT_EQ(all_reduce_of(sixes(), "data:allreduce=tree", 24), "tree");
    EXPECT_EQ(all_reduce_of(sixes(), "data:allreduce=hierarchical(ring,tree)", 4), "hierarchical(ring,tree)");
    EXPECT_EQ(all_reduce_of(sixes(), "data", 18), "hierarchical(ring,ring)") << "a third node, of no known prices";
}

// Pieces go by all network cards of a node, as sums do, and as the plan says of these.
TEST(MakeSchedule, ScattersAndGathersByAllNetworkCards) {
    for (const char* zero : {"data:zero=2", "data:zero=3"}) {
        const auto chosen = [&](const std::string& more, std::int64_t devices) {
            return all_reduce_of(sixes(), zero + more, devices);
        };
        EXPECT_EQ(chosen("", 6), "ring");
        EXPECT_EQ(chosen("", 24), "rings");
        EXPECT_EQ(chosen("", 8), "rings") << "the second node is partly filled";
        EXPECT_EQ(chosen(":allreduce=hierarchical(ring,tree)", 12), "rings");
        EXPECT_EQ(chosen(":allreduce=ring", 24), "ring");
        EXPECT_EQ(chosen(":allreduce=nccl(tree,simple)", 24), "nccl(any,simple)") << "trees scatter nothing";
        EXPECT_EQ(chosen(":allreduce=openmpi", 24), "ring");
    }
    Machine machine = sixes();
    machine.nodes = {node_of(6, 1), node_of(4, 3)};
    EXPECT_EQ(all_reduce_of(machine, "data:zero=2", 10), "ring") << "nodes of several sizes";
}

TEST(MakeSchedule, LeavesSumsToSwitchesThatCan) {
    Machine machine = sixes();
    for (NodeKind& kind : machine.nodes) kind.sums = {{Bandwidth{1e11}, "test"}, {Seconds{1e-5}, "test"}};
    EXPECT_EQ(all_reduce_of(machine, "data", 4), "direct");
    EXPECT_EQ(all_reduce_of(machine, "data", 6), "direct");
    EXPECT_EQ(all_reduce_of(machine, "data", 24), "hierarchical(ring,halving)");
    EXPECT_EQ(all_reduce_of(machine, "data:allreduce=ring", 6), "ring");
    const auto inside_layers = [](const Machine& on, std::string_view plan) {
        const Schedule schedule = make_schedule(tower(4), on, parse_plan(plan), {.devices = 12});
        for (const Step& step : schedule.classes.at(0).steps) {
            const auto* sum = std::get_if<Communicate>(&step.action);
            if (sum != nullptr && !sum->of_bucket() && sum->kind == CollectiveKind::all_reduce)
                return to_string(sum->algorithm);
        }
        return std::string{"none"};
    };
    Machine fours = machine;
    fours.nodes = {node_of(4, 3)};
    fours.nodes[0].sums = machine.nodes[0].sums;
    EXPECT_EQ(inside_layers(fours, "data=3,tensor=4"), "direct");
    EXPECT_EQ(inside_layers(machine, "data=6,tensor=2"), "ring") << "NCCL's switches sum for three devices or more";
    EXPECT_EQ(all_reduce_of(machine, "data", 2), "ring");
    EXPECT_EQ(all_reduce_of(machine, "data", 3), "direct");
    EXPECT_EQ(inside_layers(sixes(), "data=6,tensor=2"), "ring");
    EXPECT_EQ(inside_layers(machine, "data=6,tensor=2:allreduce=ring"), "ring");
    EXPECT_EQ(inside_layers(machine, "data=3,tensor=4"), "ring") << "the second four lie on two nodes";
}

TEST(MakeSchedule, TypesFollowThePrecision) {
    using enum DataType;
    struct Case {
        Precision precision;
        DataType product, compute, wire, update;
    };
    const std::vector<Case> cases{
        {Precision::fp32, f32, f32, f32, f32},     {Precision::tf32, tf32, f32, f32, f32},
        {Precision::fp16, f16, f16, f16, f16},     {Precision::pure_bf16, bf16, bf16, bf16, bf16},
        {Precision::mixed, f16, f16, f16, f32},    {Precision::mixed_bf16, bf16, bf16, bf16, f32},
        {Precision::autocast, f16, f16, f32, f32}, {Precision::bf16, bf16, bf16, f32, f32}};
    for (const Case& c : cases) {
        SCOPED_TRACE(to_string(c.precision));
        const Schedule schedule = schedule_of(two_dense(), "data", 2, 10, c.precision);
        EXPECT_EQ(schedule.precision, c.precision);
        for (const Step& step : schedule.classes.at(0).steps) {
            SCOPED_TRACE(step.name);
            if (const auto* compute = std::get_if<Compute>(&step.action)) {
                const bool loss = std::holds_alternative<SoftmaxLoss>(compute->problem.op);  // its exponentials in f32
                const bool product = std::holds_alternative<MatMul>(compute->problem.op);
                EXPECT_EQ(compute->problem.type, loss ? f32 : product ? c.product : c.compute);
            }
            if (const auto* reduce = std::get_if<Communicate>(&step.action)) {
                EXPECT_EQ(reduce->type, c.wire);
            }
            if (const auto* update = std::get_if<Update>(&step.action)) {
                EXPECT_EQ(update->problem.type, c.update);
            }
        }
    }
    EXPECT_THROW(schedule_of(two_dense(), "data", 2, 10, Precision::fp8), InputError) << "sizes of 4, 3 and 2";
}

// Weights travel as layers read them, gradients as they are kept.
TEST(MakeSchedule, GathersWeightsInTheTypeThatLayersRead) {
    for (const char* plan : {"data:zero=1", "data:zero=3"}) {
        SCOPED_TRACE(plan);
        const Schedule schedule = schedule_of(two_dense(), plan, 2, 10, Precision::bf16);
        for (const Step& step : schedule.classes.at(0).steps) {
            const auto* moved = std::get_if<Communicate>(&step.action);
            if (moved == nullptr) continue;
            const bool weights = moved->kind == CollectiveKind::all_gather;
            EXPECT_EQ(moved->type, weights ? DataType::bf16 : DataType::f32) << step.name;
        }
    }
}

}  // namespace
}  // namespace rehearse::schedule
