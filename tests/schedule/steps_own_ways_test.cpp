// SPDX-License-Identifier: Apache-2.0
// Ranks that do not simply sum their gradients: models of their own, few bits, servers.
#include <gmock/gmock.h>

#include "core/error.hpp"
#include "core/methods/curvature.hpp"
#include "core/methods/servers.hpp"
#include "core/methods/trust_ratios.hpp"
#include "schedule/draw.hpp"
#include "schedule/methods/servers.hpp"
#include "tests/schedule/examples.hpp"

namespace rehearse::schedule {
namespace {

// Stich 2019: two updates of each rank's own model, then the mean of all models.
TEST(DataParallelByMethod, LocalModelsAreAveragedAfterTheirUpdates) {
    EXPECT_EQ(draw(schedule_of(two_dense(), "data:local=2:first=1B:bucket=1B", 2)),
              "compute: a:forward#0 relu:forward#0 b:forward#0 loss:forward#0"
              " loss:backward_data#0 b:backward_weights#0 b:backward_data#0 relu:backward_data#0 a:backward_weights#0"
              " bucket0:update#0 bucket1:update#0"
              " a:forward#1 relu:forward#1 b:forward#1 loss:forward#1"
              " loss:backward_data#1 b:backward_weights#1 b:backward_data#1 relu:backward_data#1 a:backward_weights#1"
              " bucket0:update#1 bucket1:update#1\n"
              "communication(data): bucket0:allreduce#1<bucket1:update#1 bucket1:allreduce#1<bucket1:update#1\n");
}

// Zhang et al. 2015: differences as they are before the step, beside it, applied with its first update.
TEST(DataParallelByMethod, ElasticDifferencesTravelBesideTheStep) {
    EXPECT_EQ(draw(schedule_of(two_dense(), "data:local=1:elastic=0.5:first=1B:bucket=1B", 2)),
              "compute: a:forward relu:forward b:forward loss:forward"
              " loss:backward_data b:backward_weights b:backward_data relu:backward_data a:backward_weights"
              " bucket0:update<bucket0:allreduce bucket1:update<bucket1:allreduce\n"
              "communication(data): bucket0:allreduce bucket1:allreduce\n");
}

TEST(DataParallelByMethod, CompressedGradientsAreGathered) {
    const Schedule schedule = schedule_of(two_dense(), "data:compress=top(0.25):bucket=1TB:first=1TB", 4);
    for (const Step& step : schedule.classes[0].steps) {
        const auto* gather = std::get_if<Communicate>(&step.action);
        if (gather == nullptr) continue;
        EXPECT_EQ(gather->kind, CollectiveKind::all_gather);
        const auto kept = static_cast<std::int64_t>(std::ceil(0.25 * static_cast<double>(parameters(two_dense()))));
        EXPECT_EQ(gather->elements, 4 * 2 * kept) << "indices and values of four ranks";
    }
}

// Bernstein et al. 2018: a bit of each of 23 gradients is a word, and four ranks send one each.
TEST(DataParallelByMethod, SignsAreGathered) {
    const Schedule schedule = schedule_of(two_dense(), "data:signs=vote:bucket=1TB:first=1TB", 4);
    int gathers = 0;
    for (const Step& step : schedule.classes[0].steps) {
        const auto* gather = std::get_if<Communicate>(&step.action);
        if (gather == nullptr) continue;
        ++gathers;
        EXPECT_EQ(gather->kind, CollectiveKind::all_gather);
        EXPECT_EQ(gather->elements, 4);
        ASSERT_EQ(gather->beside.size(), 1U);
        EXPECT_EQ(gather->beside[0].times, 5) << "signs are taken once, and counted of each rank";
        EXPECT_EQ(elements(std::get<Add>(gather->beside[0].problem.op).shape), 23);
    }
    EXPECT_EQ(gathers, 1);
}

// Liu et al. 2019: shares by the first half of the batch, whose gradients of weights nobody makes, then weights by the
// second half. Each sum comes before its update, and the update before the next half.
TEST(DataParallelByMethod, SharesOfOperatorsTakeTurnsWithWeights) {
    Network n{.name = "shares", .layers = {}};
    const int input = add(n, "input", Input{{1, 4}}, {});
    const int p = add(n, "p", Parameter{{4, 2}}, {});
    const int mixed = add(n, "mixed", BatchedMatMul{{1, 4}, {4, 2}}, {input, p});
    const int flat = add(n, "flat", Flatten{{1, 2}}, {mixed});
    const int f = add(n, "f", MatMul{.m = 1, .n = 3, .k = 2}, {flat});
    add(n, "loss", SoftmaxLoss{3}, {f});
    EXPECT_EQ(
        draw(schedule_of(n, "data:bilevel=on", 2)),
        "compute: p:forward#0 mixed:forward#0 f:forward#0 loss:forward#0"
        " loss:backward_data#0 f:backward_data#0 mixed:backward_data#0 p:backward_weights#0"
        " bucket1:update#0<bucket1:allreduce#0"
        " p:forward#1 mixed:forward#1 f:forward#1 loss:forward#1"
        " loss:backward_data#1 f:backward_weights#1 f:backward_data#1 mixed:backward_data#1"
        " bucket0:update#1<bucket0:allreduce#1\n"
        "communication(data): bucket1:allreduce#0<p:backward_weights#0 bucket0:allreduce#1<f:backward_weights#1\n");
}

// You et al. 2020 with ZeRO: two norms of each of four tensors, once of all buckets; then Adam's step on half of the
// 23 weights, as far as each tensor's ratio says.
TEST(DataParallelByMethod, LambSumsNormsOfWhatRanksHavePiecesOf) {
    const auto made = [](std::string_view plan) {
        return make_schedule(two_dense(), sixes(), parse_plan(plan),
                             {.devices = 2, .batch_per_device = 10, .optimizer = Optimizer::lamb});
    };
    const Schedule schedule = made("data:zero=2:first=1B:bucket=1B");
    EXPECT_EQ(
        draw(schedule),
        "compute: a:forward relu:forward b:forward loss:forward"
        " loss:backward_data b:backward_weights b:backward_data relu:backward_data a:backward_weights"
        " bucket0:update<bucket0:norms_data bucket1:update<bucket0:norms_data\n"
        "communication(data): bucket0:reducescatter<b:backward_weights bucket1:reducescatter<a:backward_weights"
        " bucket0:norms_data<a:backward_weights bucket0:allgather<bucket0:update bucket1:allgather<bucket1:update\n");
    EXPECT_TRUE(has_known_norms(schedule));
    std::vector<Op> updates;
    for (const Step& step : schedule.classes[0].steps) {
        if (const auto* update = std::get_if<Update>(&step.action)) updates.push_back(update->problem.op);
        const auto* communicate = std::get_if<Communicate>(&step.action);
        if (communicate == nullptr || communicate->content != Content::norms) continue;
        EXPECT_EQ(communicate->elements, 8);
        EXPECT_EQ(communicate->type, DataType::f32);
        ASSERT_EQ(communicate->beside.size(), 1U);
        EXPECT_EQ(elements(std::get<Add>(communicate->beside[0].problem.op).shape), 4 + 8) << "of b, of a";
    }
    EXPECT_EQ(updates, (std::vector<Op>{AdamUpdate{4}, AdamUpdate{8}}));
    EXPECT_FALSE(has_known_norms(made("data")));
}

// Osawa et al. 2019: factors beside the backward pass; each of two ranks inverts those of one of the two layers, the
// larger one of a is what a step waits for, and has its directions sent to the other.
TEST(DataParallelByMethod, CurvatureIsInvertedByItsOwner) {
    const Schedule schedule = schedule_of(two_dense(), "data:kfac=1", 2);
    EXPECT_EQ(owners_of(schedule.classes[0].part, 2), (std::vector<std::int64_t>{1, 0}));  // of b, of a
    EXPECT_EQ(draw(schedule),
              "compute: a:forward relu:forward b:forward loss:forward"
              " loss:backward_data b:backward_weights b:factor_of_inputs b:factor_of_errors b:backward_data"
              " relu:backward_data a:backward_weights a:factor_of_inputs a:factor_of_errors"
              " invert0_of_inputs<bucket0:factors<bucket1:factors invert0_of_errors"
              " direction0_of_inputs<bucket0:allreduce<bucket1:allreduce direction0_of_errors"
              " bucket0:update<bucket0:broadcast bucket1:update<bucket1:broadcast\n"
              "communication(data): bucket0:factors<b:factor_of_errors bucket0:allreduce<b:factor_of_errors"
              " bucket1:factors<a:factor_of_errors bucket1:allreduce<a:factor_of_errors"
              " bucket0:broadcast<direction0_of_errors bucket1:broadcast<direction0_of_errors\n");
    for (const Step& step : schedule.classes[0].steps) {
        const auto* communicate = std::get_if<Communicate>(&step.action);
        if (communicate == nullptr) continue;
        // Triangles of 5 and 3 rows of a (its 4 inputs and a 1, its 3 outputs), of 4 and 2 of b.
        if (communicate->content == Content::factors) {
            EXPECT_EQ(communicate->elements, communicate->bucket() == 1 ? 15 + 6 : 10 + 3);
        }
        if (communicate->kind == CollectiveKind::broadcast) {
            EXPECT_EQ(communicate->root, communicate->bucket() == 1 ? 0 : 1);
        }
    }
}

// Grosse and Martens 2016: c, two channels and filters of 3 x 3 without bias, is a dense layer of 18 inputs on 9
// pixels; f has 18 inputs and 3 outputs. The batch norm goes by its gradients.
TEST(DataParallelByMethod, CurvatureOfAConvolutionIsThatOfItsPixels) {
    const Schedule schedule = schedule_of(residual(), "data:kfac=1", 2, 5);
    std::vector<std::int64_t> factors;
    std::vector<std::string> problems;
    for (const Step& step : schedule.classes[0].steps) {
        const auto* communicate = std::get_if<Communicate>(&step.action);
        if (communicate != nullptr && communicate->content == Content::factors)
            factors.push_back(communicate->elements);
        const auto* precondition = std::get_if<Precondition>(&step.action);
        if (precondition == nullptr || precondition->work != Precondition::Work::factor) continue;
        problems.push_back(to_string(precondition->problem));
    }
    EXPECT_EQ(factors, (std::vector<std::int64_t>{18 * 19 / 2 + 3 * 4 / 2, 18 * 19 / 2 + 2 * 3 / 2}));
    EXPECT_EQ(problems, (std::vector<std::string>{
                            "matmul:n5m1n18k18:f32:backward_weights", "matmul:n5m1n3k3:f32:backward_weights",
                            "matmul:n5m9n18k18:f32:backward_weights", "matmul:n5m9n2k2:f32:backward_weights"}));
}

TEST(DataParallelByMethod, CurvatureIsNewOncePerStep) {
    int inverted = 0, multiplied = 0, updated = 0;
    const Schedule schedule = schedule_of(two_dense(), "data:kfac=3", 1, 6);
    for (const Step& step : schedule.classes[0].steps) {
        const auto* precondition = std::get_if<Precondition>(&step.action);
        if (precondition != nullptr) {
            (precondition->work == Precondition::Work::invert ? inverted : multiplied) +=
                precondition->work == Precondition::Work::factor ? 0 : 1;
        }
        updated += std::holds_alternative<Update>(step.action) ? 1 : 0;
    }
    EXPECT_EQ(inverted, 4) << "two factors of two layers";
    EXPECT_EQ(multiplied, 3 * 4);
    EXPECT_EQ(updated, 3 * 2);
    EXPECT_THROW(parse_plan("data:kfac=2:microbatches=2"), InputError);
    EXPECT_THROW(parse_plan("data:damping=0.1"), InputError);
    EXPECT_THROW(schedule_of(residual(), "data:kfac=0", 1), InputError);
    EXPECT_THROW(schedule_of(residual(), "data=1:kfac=1,spatial=2:edges=apart", 2), InputError);
}

// Zhang et al. 2015, asynchronous: updates of the rank's own model, then that goes to the servers.
TEST(Servers, OfElasticAveragesGetModelsAfterTheUpdates) {
    EXPECT_EQ(draw(schedule_of(two_dense(), "server=1,data=2:local=1:elastic=0.5:first=1B:bucket=1B", 3)),
              "compute: a:forward relu:forward b:forward loss:forward"
              " loss:backward_data b:backward_weights b:backward_data relu:backward_data a:backward_weights"
              " bucket0:update bucket1:update\n"
              "send_gradients: bucket0:trade<bucket1:update bucket1:trade<bucket1:update\n");
    EXPECT_THROW(parse_plan("server=1,data=2:local=2"), InputError);
    EXPECT_THROW(parse_plan("server=1,groups=2,data=2:local=2:elastic=0.5"), InputError);
}

// Nobody updates but the servers; buckets are shared out by size.
TEST(Servers, GetGradientsAsSoonAsTheyAreThere) {
    const Schedule schedule = schedule_of(two_dense(), "server=2,data=2:first=1B:bucket=1B", 4);
    EXPECT_EQ(draw(schedule),
              "compute: a:forward relu:forward b:forward loss:forward"
              " loss:backward_data b:backward_weights b:backward_data relu:backward_data a:backward_weights\n"
              "send_gradients: bucket0:trade<b:backward_weights bucket1:trade<a:backward_weights\n");
    EXPECT_EQ(ranks(schedule.mesh), 2);
    EXPECT_EQ(all_ranks(schedule), 4);
    EXPECT_EQ(servers_of({{{0}, 5}, {{1}, 9}, {{2}, 3}, {{3}, 4}}, 2), (std::vector<int>{1, 0, 0, 1}));
}

// Kurth et al. 2017: sums in the group, its first rank trades, and hands the weights on.
TEST(Servers, GroupsSumFirst) {
    EXPECT_EQ(draw(schedule_of(two_dense(), "server=1,groups=2,data=3:first=1B:bucket=1B", 7)),
              "compute: a:forward relu:forward b:forward loss:forward"
              " loss:backward_data b:backward_weights b:backward_data relu:backward_data a:backward_weights\n"
              "send_gradients: bucket0:trade<b:backward_weights<bucket0:allreduce"
              " bucket1:trade<a:backward_weights<bucket1:allreduce\n"
              "communication(data): bucket0:allreduce<b:backward_weights bucket1:allreduce<a:backward_weights"
              " bucket0:broadcast<bucket0:trade bucket1:broadcast<bucket1:trade\n");
}

// Chilimbi et al. 2014: K (M + N) instead of M N.
TEST(Servers, GetVectorsOfDenseLayersWhereTheseAreFewer) {
    Network network = two_dense();
    for (Layer& layer : network.layers) {
        if (auto* dense = std::get_if<MatMul>(&layer.op)) dense->bias = false;
    }
    const auto& wide = std::get<MatMul>(network.layers[1].op);
    const std::int64_t limit = wide.n * wide.k / (wide.n + wide.k);
    EXPECT_TRUE(sends_vectors(wide, limit - 1));
    EXPECT_FALSE(sends_vectors(wide, limit + 1));
    const Schedule schedule = schedule_of(network, "server=1:dense=vectors,data=2", 3, 1);
    int vectors = 0;
    for (const Step& step : schedule.classes[0].steps) {
        if (const auto* compute = std::get_if<Compute>(&step.action)) {
            const bool by_server = sends_vectors(network.layers[static_cast<std::size_t>(compute->layer)].op, 1);
            EXPECT_FALSE(by_server && compute->problem.pass == Pass::backward_weights) << "that is the server's work";
        }
        const auto* push_pull = std::get_if<PushPull>(&step.action);
        if (push_pull == nullptr || push_pull->work.size() == 1) continue;
        ++vectors;
        EXPECT_LT(push_pull->sent, push_pull->received);
        EXPECT_EQ(push_pull->work.front().pass, Pass::backward_weights);
    }
    EXPECT_GT(vectors, 0);
}

}  // namespace
}  // namespace rehearse::schedule
