// SPDX-License-Identifier: Apache-2.0
#include "schedule/tables.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "core/error.hpp"
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

// "> bottom" is what the exchange goes on beside: forward the lookups before it, backward the interaction's gradient.
TEST(SharedTables, TravelBesideTheLayersInBetween) {
    const Schedule schedule = schedule_of(recommender(), "data:tables=shared", 2, 5);
    std::string text;
    for (const Step& step : schedule.classes[0].steps) {
        text += step.name;
        for (const int before : step.after) {
            text += " < " + schedule.classes[0].steps[static_cast<std::size_t>(before)].name;
        }
        text += "\n";
    }
    EXPECT_EQ(text,
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
        if (action->bucket >= 0) {
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

TEST(SharedTables, RefuseWhatTheyDoNotGoWith) {
    EXPECT_THROW(parse_plan("data:tables=shared:microbatches=2"), InputError);
    EXPECT_THROW(parse_plan("data:tables=shared:local=2"), InputError);
    EXPECT_THROW(parse_plan("data:tables=shared,tensor=2"), InputError);
    EXPECT_THROW(parse_plan("data:tables=both"), InputError);
    Network without{.name = "without", .layers = {}};
    add(without, "input", Input{{6}}, {});
    EXPECT_THROW(share_tables(without, "data", 0, 2), InputError);
}

}  // namespace
}  // namespace rehearse::schedule
