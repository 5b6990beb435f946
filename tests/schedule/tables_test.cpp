// SPDX-License-Identifier: Apache-2.0
#include "schedule/axes/tables.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "core/error.hpp"
#include "schedule/axes/experts.hpp"
#include "schedule/axes/tensor.hpp"
#include "schedule/memory.hpp"
#include "tests/schedule/examples.hpp"

namespace rehearse::schedule {
namespace {

/// 6 -> dense (4) ------------------.
///   ids -> 4 tables of 50 rows of 4 -> interaction (14) -> scores (2) -> loss.
Network recommender() {
    Network n{.name = "recommender", .layers = {}};
    const int input = add(n, "input", Input{{6}}, {});
    const int dense = add(n, "dense", MatMul{.m = 1, .n = 4, .k = 6}, {input});
    const int ids = add(n, "ids", Input{{4 * 3}, 50}, {});
    const int tables = add(n, "tables", EmbeddingBag{4, 3, 50, 4}, {ids});
    const int both = add(n, "interaction", Interaction{5, 4}, {dense, tables});
    add(n, "loss", SoftmaxLoss{2}, {add(n, "scores", MatMul{.m = 1, .n = 2, .k = 14}, {both})});
    return n;
}

std::string picture(const Part& part) {
    std::string text;
    for (const Layer& layer : part.network.layers) text += fmt::format("{} {}\n", layer.name, to_string(layer.op));
    return text;
}

TEST(SharedTables, DrawnByHandForTwoRanks) {
    EXPECT_EQ(picture(share_tables(recommender(), "data", 0, 2)),
              "input input:6\n"
              "ids input:12:vocabulary50\n"
              "tables embeddingbag:t2l3v50c4:samples2:direct\n"
              "tables.exchange communication:4x4:exchange:data:parts2:dim0:offset0\n"
              "dense matmul:m1n4k6:bias\n"
              "interaction interaction:v5c4\n"
              "scores matmul:m1n2k14:bias\n"
              "loss softmaxloss:2\n");
}

TEST(SharedTables, OfOneRankAreUpdatedDirectly) {
    const Part part = share_tables(recommender(), "data", 0, 1);
    EXPECT_EQ(part.network.layers.size(), recommender().layers.size());
    EXPECT_EQ(to_string(part.network.layers[2].op), "embeddingbag:t4l3v50c4:direct");
}

// Two tables on each of three ranks, though there are four in all.
TEST(SharedTables, ThatAreNoMultipleAreThoseOfTheFullestRank) {
    const Part part = share_tables(recommender(), "data", 0, 3);
    EXPECT_EQ(std::get<EmbeddingBag>(part.network.layers[2].op).tables, 2);
    EXPECT_EQ(part.network.layers[3].output, (Shape{4, 4}));
    EXPECT_EQ(std::get<Communication>(part.network.layers[3].op).shape, (Shape{6, 4}));
}

// The rank that has the dense layer computes it for both, and each gets its own samples' four values.
TEST(SharedTables, AndOneRankThatHasTheBottom) {
    EXPECT_EQ(picture(share_tables(recommender(), "data", 0, 2, true)),
              "input input:2x6\n"
              "ids input:12:vocabulary50\n"
              "dense matmul:m2n4k6:bias\n"
              "dense.rows flatten:2x4\n"
              "dense.exchange communication:8:exchange:data:parts2:dim0:offset0:kept4\n"
              "tables embeddingbag:t2l3v50c4:samples2:direct\n"
              "tables.exchange communication:4x4:exchange:data:parts2:dim0:offset0\n"
              "interaction interaction:v5c4\n"
              "scores matmul:m1n2k14:bias\n"
              "loss softmaxloss:2\n");
    // One rank sends its tables' sums and the bottom's result, in all 5 samples x 2 ranks x (2 tables + 1) x 4 values.
    const Schedule schedule = schedule_of(recommender(), "data:tables=shared:bottom=one", 2, 5);
    std::int64_t exchanged = 0;
    for (const Step& step : schedule.classes[0].steps) {
        const auto* action = std::get_if<Communicate>(&step.action);
        if (action != nullptr && action->kind == CollectiveKind::all_to_all && action->pass == Pass::forward) {
            exchanged += action->elements;
        }
        if (step.name == "dense:forward") {
            EXPECT_EQ(to_string(std::get<Compute>(step.action).problem.op), "matmul:m2n4k6:bias");
        }
    }
    EXPECT_EQ(exchanged, 5 * 2 * (2 + 1) * 4);
    EXPECT_EQ(picture(share_tables(recommender(), "data", 0, 1, true)),
              picture(share_tables(recommender(), "data", 0, 1)));
    Network other = recommender();
    other.layers[1].op = LayerNorm{.rows = 1, .features = 6};
    other.layers[1].output = {6};
    EXPECT_THROW(share_tables(other, "data", 0, 2, true), InputError);
    EXPECT_THROW(schedule_of(recommender(), "data:bottom=one", 2, 5), InputError);
}

// "> bottom" is what the exchange goes on beside: forward the lookups before it, backward the interaction's gradient.
std::string steps_of(const Schedule& schedule) {
    std::string text;
    for (const Step& step : schedule.classes[0].steps) {
        text += step.name;
        for (const int before : step.after) {
            text += " < " + schedule.classes[0].steps[static_cast<std::size_t>(before)].name;
        }
        text += "\n";
    }
    return text;
}

TEST(SharedTables, TravelBesideTheLayersInBetween) {
    EXPECT_EQ(steps_of(schedule_of(recommender(), "data:tables=shared", 2, 5)),
              "tables:forward\n"
              "tables.exchange:alltoall < tables:forward\n"
              "dense:forward\n"
              "interaction:forward < tables.exchange:alltoall\n"
              "scores:forward\n"
              "loss:forward\n"
              "loss:backward_data\n"
              "scores:backward_weights\n"
              "scores:backward_data\n"
              "interaction:backward_data\n"
              "tables.exchange:gradient_alltoall < interaction:backward_data\n"
              "dense:backward_weights\n"
              "bucket0:allreduce < dense:backward_weights\n"
              "tables:backward_weights < tables.exchange:gradient_alltoall\n"
              "bucket0:update < bucket0:allreduce\n");
}

// Of 5 samples on each of 2 ranks, 4 tables of width 4: 80 values a rank each way, half of them to the other one.
TEST(SharedTables, AreNeverSummedAndTheirSumsAreExchanged) {
    const Schedule schedule = schedule_of(recommender(), "data:tables=shared:bucket=1B", 2, 5);
    std::int64_t exchanged = 0;
    for (const Step& step : schedule.classes[0].steps) {
        const auto* action = std::get_if<Communicate>(&step.action);
        if (action == nullptr) continue;
        if (action->kind == CollectiveKind::all_to_all) exchanged += action->elements;
        if (action->of_bucket()) {
            EXPECT_LT(action->elements, 50);
        }
    }
    EXPECT_EQ(exchanged, 2 * 5 * 4 * 4);
}

// Of 4 x 50 rows of 4 half; no gradients and no momentum of these.
TEST(SharedTables, TakeNoMemoryForGradients) {
    const MemoryUse use = memory_use(schedule_of(recommender(), "data:tables=shared", 2, 5));
    const double dense = 6 * 4 + 4 + 14 * 2 + 2;
    EXPECT_EQ(use.weights, Bytes{4 * (400 + dense)});
    EXPECT_EQ(use.gradients, Bytes{4 * dense});
    EXPECT_EQ(use.optimizer, Bytes{4 * dense});
}

// Nobody to share with: rows are still updated where they were picked, not all tables.
TEST(SharedTables, OfOneRankAreNotUpdatedAsAWhole) {
    const Schedule schedule = schedule_of(recommender(), "data:tables=shared", 1, 5);
    const double dense = 6 * 4 + 4 + 14 * 2 + 2;
    const MemoryUse use = memory_use(schedule);
    EXPECT_EQ(use.weights, Bytes{4 * (800 + dense)});
    EXPECT_EQ(use.gradients, Bytes{4 * dense});
    EXPECT_EQ(use.optimizer, Bytes{4 * dense});
    for (const Step& step : schedule.classes[0].steps) {
        const auto* update = std::get_if<Update>(&step.action);
        if (update == nullptr) continue;
        EXPECT_EQ(std::get<SgdUpdate>(update->problem.op).count, static_cast<std::int64_t>(dense));
    }
}

TEST(SharedTables, RefuseWhatTheyDoNotGoWith) {
    EXPECT_THROW(parse_plan("data:tables=shared:microbatches=2"), InputError);
    EXPECT_THROW(parse_plan("data:tables=shared:local=2"), InputError);
    EXPECT_THROW(parse_plan("server=1,groups=2,data=2:tables=shared"), InputError);
    EXPECT_THROW(parse_plan("data:tables=both"), InputError);
    Network without{.name = "without", .layers = {}};
    add(without, "input", Input{{6}}, {});
    EXPECT_THROW(share_tables(without, "data", 0, 2), InputError);
}

/// Two tokens of four values, four experts with a slot each: gate (16 weights), experts (120 and 112), scores (15).
Network mixture(std::int64_t group = 1) {
    const Routing routing{.tokens = 2, .width = 4, .experts = 4, .capacity = group, .group = group};
    Network n{.name = "mixture", .layers = {}};
    const int input = add(n, "input", Input{{2, 4}}, {});
    const int gate = add(n, "gate", MatMul{2, 4, 4, false}, {input});
    int at = add(n, "dispatch", DispatchTokens{routing}, {input, gate});
    at = add(n, "up", GroupedMatMul{.experts = 4, .rows = group, .n = 6, .k = 4, .group = group}, {at});
    at = add(n, "relu", Activation{Nonlinearity::relu, {4, 6}}, {at});
    at = add(n, "down", GroupedMatMul{.experts = 4, .rows = group, .n = 4, .k = 6, .group = group}, {at});
    at = add(n, "combine", CombineTokens{routing}, {at, gate});
    at = add(n, "scores", MatMul{.m = 2, .n = 3, .k = 4}, {at});
    add(n, "loss", SoftmaxLoss{.classes = 3, .rows = 2}, {at});
    return n;
}

TEST(SharedExperts, DrawnByHandForTwoRanks) {
    EXPECT_EQ(picture(share_experts(mixture(), "expert", 0, 2)),
              "input input:2x4\n"
              "gate matmul:m2n4k4\n"
              "dispatch dispatch:t2c4e4:top1:capacity1\n"
              "up.dispatch communication:4x4:exchange:expert:parts2:dim0:offset0\n"
              "up groupedmatmul:e2m1n6k4:bias:sources2\n"
              "relu activation:4x6:relu\n"
              "down groupedmatmul:e2m1n4k6:bias:sources2\n"
              "down.combine communication:4x4:exchange:expert:parts2:dim0:offset0\n"
              "combine combine:t2c4e4:top1:capacity1\n"
              "scores matmul:m2n3k4:bias\n"
              "loss softmaxloss:3:rows2\n");
    EXPECT_EQ(picture(share_experts(mixture(), "expert", 0, 1)), picture(whole(mixture())));
}

// Gradients of slots leave before those of the experts that made them: the exchange goes on beside these.
TEST(SharedExperts, StepByStep) {
    EXPECT_EQ(steps_of(schedule_of(mixture(), "expert", 2, 5)),
              "gate:forward\n"
              "dispatch:forward\n"
              "up.dispatch:alltoall < dispatch:forward\n"
              "up:forward < up.dispatch:alltoall\n"
              "relu:forward\n"
              "down:forward\n"
              "down.combine:alltoall < down:forward\n"
              "combine:forward < down.combine:alltoall\n"
              "scores:forward\n"
              "loss:forward\n"
              "loss:backward_data\n"
              "scores:backward_weights\n"
              "scores:backward_data\n"
              "combine:backward_data\n"
              "down.combine:gradient_alltoall < combine:backward_data\n"
              "down:backward_weights < down.combine:gradient_alltoall\n"
              "down:backward_data < down.combine:gradient_alltoall\n"
              "relu:backward_data\n"
              "up:backward_data\n"
              "up.dispatch:gradient_alltoall < up:backward_data\n"
              "up:backward_weights\n"
              "dispatch:backward_data < up.dispatch:gradient_alltoall\n"
              "gate:backward_weights\n"
              "bucket0:allreduce < gate:backward_weights\n"
              "bucket0:update < bucket0:allreduce\n"
              "bucket1:update\n");
}

// Four exchanges of 4 slots of 4 values, 5 samples: 80 values each. The sum of 31 dense weights is over all four ranks,
// that of the 116 of two of the experts over the two ranks that have them.
TEST(SharedExperts, SumGradientsOverThoseWhoHaveThem) {
    const Schedule schedule = schedule_of(mixture(), "data=2,expert=2", 4, 5);
    std::vector<std::int64_t> exchanged;
    std::map<std::int64_t, std::int64_t> summed;
    for (const Step& step : schedule.classes[0].steps) {
        const auto* action = std::get_if<Communicate>(&step.action);
        if (action == nullptr) continue;
        if (action->kind == CollectiveKind::all_to_all) exchanged.push_back(action->elements);
        if (action->of_bucket()) summed[size_of(schedule.mesh, action->axis)] += action->elements;
    }
    EXPECT_EQ(exchanged, (std::vector<std::int64_t>{80, 80, 80, 80}));
    EXPECT_EQ(summed, (std::map<std::int64_t, std::int64_t>{{4, 31}, {2, 116}}));
    EXPECT_EQ(global_batch(schedule), 20);
    EXPECT_EQ(memory_use(schedule).weights, Bytes{4.0 * (31 + 116)});
    EXPECT_EQ(memory_use(schedule_of(mixture(), "expert", 4, 5)).weights, Bytes{4.0 * (31 + 58)});
}

TEST(SharedExperts, RefuseWhatTheyCannotShare) {
    const auto refusal = [](const Network& network, const char* plan, std::int64_t devices, std::int64_t batch) {
        try {
            schedule_of(network, plan, devices, batch);
        } catch (const InputError& error) {
            return std::string{error.what()};
        }
        return std::string{"none"};
    };
    EXPECT_NE(refusal(mixture(), "expert", 3, 5).find("'up' of network 'mixture' has 4 experts, which 3 ranks"),
              std::string::npos);
    EXPECT_NE(refusal(two_dense(), "expert", 2, 5).find("has no experts"), std::string::npos);
    EXPECT_EQ(refusal(mixture(2), "expert", 2, 6), "none");
    EXPECT_NE(refusal(mixture(2), "expert", 2, 5).find("tokens of 2 samples together"), std::string::npos);
    EXPECT_NE(refusal(mixture(2), "data:microbatches=2", 2, 6).find("cannot compute 3 at a time"), std::string::npos);
}

// A pipeline's first stage has the tables; what its rows read is of before the step, whatever the order.
TEST(SharedTables, InAPipelineAreUpdatedAfterAllForwardPasses) {
    const auto made = [](std::string_view plan) -> std::string {
        try {
            static_cast<void>(schedule_of(recommender(), plan, 4, 4));
        } catch (const InputError& error) {
            return error.what();
        }
        return "made";
    };
    EXPECT_EQ(made("pipe=2,data=2:tables=shared"), "made");
    EXPECT_EQ(made("pipe=2:schedule=gpipe:microbatches=4,data=2:tables=shared"), "made");
    EXPECT_THAT(made("pipe=2:microbatches=4,data=2:tables=shared"), testing::HasSubstr("choose schedule=gpipe"));
    EXPECT_THAT(made("pipe=2:recompute=on,data=2:tables=shared"), testing::HasSubstr("without recompute"));
    EXPECT_THAT(made("data:microbatches=2:tables=shared"), testing::HasSubstr("pipe=N"));
}

}  // namespace
}  // namespace rehearse::schedule
