// SPDX-License-Identifier: Apache-2.0
// Plans of networks that take tokens (tables, experts, transformers), with real tensors: gradients and weights are
// those of one rank. Run under mpirun with 2, 4 and 8 ranks.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>

#include "core/error.hpp"
#include "core/precision.hpp"
#include "models/huggingface/families.hpp"
#include "tests/run/networks.hpp"
#include "tests/run/train_checked.hpp"

namespace rehearse::run {
namespace {

using kernels::Communicator;
using test::add;
using test::train_checked;

/// Numbers through dense layers, ids through eight tables; their dot products through others.
Network recommender() {
    Network n{.name = "recommender", .layers = {}};
    int dense = add(n, "input", Input{{6}}, {});
    dense = add(n, "bottom0", MatMul{.m = 1, .n = 8, .k = 6}, {dense});
    dense = add(n, "relu", Activation{Nonlinearity::relu, {8}}, {dense});
    dense = add(n, "bottom1", MatMul{.m = 1, .n = 4, .k = 8}, {dense});
    const int ids = add(n, "ids", Input{{8 * 3}, 20}, {});
    const int tables = add(n, "tables", EmbeddingBag{8, 3, 20, 4}, {ids});
    const int both = add(n, "interaction", Interaction{9, 4}, {dense, tables});
    add(n, "loss", SoftmaxLoss{2}, {add(n, "scores", MatMul{.m = 1, .n = 2, .k = 40}, {both})});
    check(n);
    return n;
}

void expect_tables_gradients(const Network& network, const char* plan, float rate, double most = 1e-4) {
    SCOPED_TRACE(plan);
    const Communicator world = Communicator::world();
    const Schedule schedule = test::schedule_of(network, plan, world.size(), 4);
    Options options{.steps = 3, .learning_rate = rate, .momentum = 0, .check_gradients = true};
    options.single_rank =
        std::make_shared<const Schedule>(test::schedule_of(network, "data", 1, micro_batch_size(schedule)));
    const Result result = train_on(world, schedule, options, {}, {});
    EXPECT_LE(result.gradient_error, result.gradient_tolerance);
    EXPECT_LT(result.gradient_tolerance, most);
    options.momentum = 0.9F;
    EXPECT_THROW(train_on(world, schedule, options, {}, {}), InputError);
}

// Its tables are drawn small: a rate at which rows move by more than rounding reaches.
TEST(SharedTables, TrainAsOneRankDoes) {
    const Communicator world = Communicator::world();
    std::vector<const char*> plans{"data:tables=shared",
                                   "data:tables=shared:bucket=1B:first=1B",
                                   "data:tables=shared:zero=1",
                                   "data:tables=shared:zero=2:bucket=1B:first=1B",
                                   "data:tables=shared:zero=3",
                                   "data:tables=shared:compress=1bit",
                                   "data:tables=shared:allreduce=adasum",
                                   "data:tables=shared:allreduce=adasum:combine=updates"};
    // In a pipeline whose stage of the tables has all forward passes before the first backward one; or updates all its
    // weights after each micro-batch, as it does rows.
    if (world.size() == 2)
        plans.insert(plans.end(), {"pipe=2:microbatches=2,data=1:tables=shared",
                                   "pipe=2:schedule=pipedream:microbatches=4,data=1:tables=shared"});
    if (world.size() == 4)
        plans.insert(plans.end(), {"data=2:tables=shared,tensor=2", "pipe=2:microbatches=2,data=2:tables=shared",
                                   "data=2:tables=shared:zero=1,pipe=2:schedule=gpipe:microbatches=4",
                                   "pipe=2:microbatches=2,data=2:tables=shared:allreduce=adasum",
                                   "pipe=2:schedule=pipedream:microbatches=4,data=2:tables=shared",
                                   "pipe=4:copies=1+2+1:microbatches=4,data=1:tables=shared"});
    for (const char* plan : plans)  // one that updates four times a step goes as far in smaller steps
        expect_tables_gradients(recommender(), plan,
                                std::string_view{plan}.find("pipedream") == std::string_view::npos ? 2 : 0.2F);
}

// A table of each for all ranks with samples of their own, whichever axis these lie along.
TEST(SharedTables, WithSharedExpertsTrainAsOneRankDoes) {
    const std::map<std::int64_t, std::vector<const char*>> plans{
        {2, {"data=1:tables=shared,expert=2", "data=2:tables=shared,expert=1"}},
        {4, {"data=2:tables=shared,expert=2", "expert=2,data=2:tables=shared:zero=2", "data=1:tables=shared,expert=4"}},
        {8, {"data=2:tables=shared,expert=2,tensor=2", "pipe=2:microbatches=2,data=2:tables=shared,expert=2"}}};
    for (const char* plan : plans.at(Communicator::world().size()))
        expect_tables_gradients(test::mixture_of_tables(), plan, 1, 1e-3);
}

// Which each would update by its own micro-batches alone.
TEST(SharedTables, OfAStageWithCopiesAreRefused) {
    EXPECT_THROW(test::schedule_of(recommender(), "pipe=3:copies=2+1:microbatches=2,data=1:tables=shared", 3, 4),
                 InputError);
}

/// Heads, a vocabulary and rows that eight ranks can share, with dropout.
Network decoder(std::int64_t heads, std::int64_t words = 48) {
    return models::transformer({.name = "decoder",
                                .layers = 2,
                                .hidden = 32,
                                .heads = heads,
                                .vocabulary = words,
                                .positions = 16,
                                .keep = 0.75},
                               16);
}

// Words lie in pieces and positions whole: each tensor rank would change the latter by a combination of its own.
TEST(TokenPlans, OfAdasumAreRefusedWhereALayerIsPartlyInPieces) {
    if (Communicator::world().size() != 4) GTEST_SKIP() << "of four ranks";
    for (const char* plan : {"data=2:allreduce=adasum,tensor=2", "data=2:compress=top(0.5),tensor=2"}) {
        EXPECT_THROW(test::schedule_of(decoder(4), plan, 4, 4), InputError) << plan;
    }
}

/// Blocks whose halves are mixtures of eight experts, some too small for all who choose them.
Network mixture(std::int64_t top, std::int64_t group) {
    return models::transformer({.name = "mixture",
                                .layers = 2,
                                .hidden = 16,
                                .heads = 2,
                                .vocabulary = 24,
                                .positions = 12,
                                .keep = 0.75,
                                .inner = 24,
                                .experts = 8,
                                .top = top,
                                .group = group},
                               12);
}

// Tokens go to the same experts however many ranks there are, as those of a sample (or two) compete with each other
// only. Where rounding could change a choice, the tolerance would not be small.
TEST(SharedExperts, TrainAsOneRankDoes) {
    const std::map<std::int64_t, std::vector<const char*>> plans{
        {2,
         {"expert", "expert:microbatches=2:recompute=blocks", "data=1:zero=3,expert", "pipe=2:microbatches=2",
          "tensor"}},
        {4,
         {"expert", "expert=2,tensor=2", "data=2,expert=2", "expert=2,data=2:zero=2", "pipe=2:microbatches=2,expert=2",
          "expert=2,tensor=2:sequence=on"}},
        {8, {"expert", "data=2:zero=1,expert=4", "pipe=2:microbatches=2,data=2,expert=2", "data=2,expert=2,tensor=2"}}};
    for (const std::int64_t top : {1, 2}) {
        std::vector<const char*> some = plans.at(Communicator::world().size());
        if (top == 2) some.resize(2);
        for (const char* plan : some) {
            SCOPED_TRACE(fmt::format("top {}, {}", top, plan));
            const Result result = train_checked(mixture(top, top), plan, 4, 2);
            EXPECT_LE(result.gradient_error, result.gradient_tolerance);
            EXPECT_LT(result.gradient_tolerance, 1e-3);
        }
    }
}

// What comes of images is gathered before the tokens choose: all that share an image choose alike.
TEST(SharedExperts, OfSharedImagesTrainAsOneRankDoes) {
    const std::map<std::int64_t, std::vector<const char*>> plans{
        {2, {"expert=1,spatial=2"}},
        {4, {"expert=2,spatial=2", "expert=2,spatial=2:edges=apart", "spatial=2,expert=2"}},
        {8, {"data=2,expert=2,spatial=2", "expert=2,spatial=2x2", "pipe=2:microbatches=2,expert=2,spatial=2"}}};
    for (const char* plan : plans.at(Communicator::world().size())) {
        SCOPED_TRACE(plan);
        const Result result = train_checked(test::mixture_of_images(), plan, 4, 2);
        EXPECT_LE(result.gradient_error, result.gradient_tolerance);
        EXPECT_LT(result.gradient_tolerance, 1e-3);
    }
}

/// Four heads on eight ranks are computed by all; the tied table stays on one stage.
void expect_transformers_gradients(const std::vector<const char*>& plans) {
    for (const std::int64_t heads : {4, 8}) {
        for (const char* plan : plans) {
            SCOPED_TRACE(fmt::format("{} heads, {}", heads, plan));
            const Result result = train_checked(decoder(heads), plan, 4, 2);
            EXPECT_LE(result.gradient_error, result.gradient_tolerance);
            EXPECT_LT(result.gradient_tolerance, 1e-3);
        }
    }
}

TEST(TokenPlans, OfTransformersGiveTheGradientsOfOneRank) {
    const std::int64_t ranks = Communicator::world().size();
    if (ranks == 2) {
        expect_transformers_gradients({"tensor", "tensor:sequence=on", "tensor:sequence=on:allreduce=doubling",
                                       "data:recompute=blocks:microbatches=2", "tensor:recompute=attention",
                                       "tensor:sequence=on:recompute=blocks", "tensor:async=on:recompute=blocks"});
    } else if (ranks == 4) {
        expect_transformers_gradients({"tensor", "tensor:sequence=on", "pipe=2:microbatches=2,tensor=2:async=on",
                                       "data=2:microbatches=2,tensor=2:sequence=on", "context=2,tensor=2:sequence=on",
                                       "context=2,tensor=2:sequence=on:recompute=blocks",
                                       "data=2:zero=2,tensor=2:sequence=on"});
    } else if (ranks == 8) {
        expect_transformers_gradients({"tensor", "tensor:sequence=on", "data=2,tensor=4:sequence=on",
                                       "data=2,context=2,tensor=2:sequence=on",
                                       "pipe=2:microbatches=2,context=2,tensor=2:sequence=on"});
    }
}

// A table that is filled up: 301 words are 512 on two ranks and on four; on eight, 1024, of which five ranks have none.
TEST(TokenPlans, WithAVocabularyThatRanksCannotShareGiveTheGradientsOfOneRank) {
    const std::map<std::int64_t, std::vector<const char*>> plans{
        {2, {"tensor", "tensor:sequence=on", "tensor:sequence=on:recompute=blocks"}},
        {4, {"tensor:sequence=on", "pipe=2:microbatches=2,tensor=2:sequence=on", "pipe=2:microbatches=2,tensor=2"}},
        {8, {"tensor:sequence=on", "pipe=2:microbatches=2,data=2:zero=1,tensor=2:sequence=on"}}};
    for (const char* plan : plans.at(Communicator::world().size())) {
        SCOPED_TRACE(plan);
        const Result result = train_checked(decoder(8, 301), plan, 4, 2);
        EXPECT_LE(result.gradient_error, result.gradient_tolerance);
        EXPECT_LT(result.gradient_tolerance, 1e-3);
    }
}

/// Dense layers that make queries, keys and values, or gate and up, side by side: of each a rank has its part. Heads of
/// keys are fewer, and the vocabulary is filled up.
TEST(TokenPlans, OfFusedProjectionsGiveTheGradientsOfOneRank) {
    const Network network = models::huggingface::from_config(
        R"({"model_type": "phi3", "hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 2,
            "num_attention_heads": 8, "num_key_value_heads": 4, "vocab_size": 301, "tie_word_embeddings": false})",
        "config.json", "fused", {.sizes = {{"tokens", 16}}});
    const std::map<std::int64_t, std::vector<const char*>> plans{
        {2, {"tensor", "tensor:sequence=on", "context", "context:ring=on"}},
        {4, {"tensor:sequence=on", "context=2,tensor=2", "pipe=2:microbatches=2,tensor=2"}},
        {8, {"data=2,context=2,tensor=2", "pipe=2:microbatches=2,tensor=4:sequence=on"}}};
    for (const char* plan : plans.at(Communicator::world().size())) {
        SCOPED_TRACE(plan);
        const Result result = train_checked(network, plan, 4, 2);
        EXPECT_LE(result.gradient_error, result.gradient_tolerance);
        EXPECT_LT(result.gradient_tolerance, 1e-3);
    }
}

/// Blocks that have one set of weights.
TEST(TokenPlans, OfRepeatedBlocksGiveTheGradientsOfOneRank) {
    if (Communicator::world().size() != 2) GTEST_SKIP() << "of two ranks";
    const Network network = models::huggingface::from_config(
        R"({"model_type": "albert", "architectures": ["AlbertForMaskedLM"], "hidden_size": 32, "embedding_size": 16,
            "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64, "vocab_size": 96,
            "max_position_embeddings": 64, "hidden_dropout_prob": 0})",
        "config.json", "repeated", {.sizes = {{"tokens", 16}}});
    for (const char* plan : {"context", "context:ring=on"}) {
        SCOPED_TRACE(plan);
        const Result result = train_checked(network, plan, 4, 2);
        EXPECT_LE(result.gradient_error, result.gradient_tolerance);
        EXPECT_LT(result.gradient_tolerance, 1e-3);
    }
}

/// The table of words on the first and the last stage: each makes a part of its gradient.
TEST(TokenPlans, WithATiedTableGiveTheGradientsOfOneRank) {
    const std::int64_t ranks = Communicator::world().size();
    std::vector<const char*> plans;
    if (ranks == 2) {
        plans = {"pipe:microbatches=1", "pipe:schedule=gpipe:microbatches=2",
                 "pipe:schedule=interleaved:microbatches=4:recompute=on", "data=1:lag=1,pipe=2:microbatches=2"};
    } else if (ranks == 4) {
        plans = {"pipe=4:microbatches=2", "pipe=2:microbatches=2,data=2:overlap=off",
                 "pipe=2:microbatches=2,data=2:zero=1", "data=2:zero=2,pipe=2:microbatches=2",
                 "pipe=2:microbatches=4,tensor=2:sequence=on"};
    } else {
        plans = {"pipe=2:microbatches=2,data=2:zero=2,tensor=2"};
    }
    for (const char* plan : plans) {
        SCOPED_TRACE(plan);
        const Result result = train_checked(decoder(4), plan, 4, 3);
        EXPECT_LE(result.gradient_error, result.gradient_tolerance);
        EXPECT_LT(result.gradient_tolerance, 1e-3);
    }
    if (ranks > 2) return;
    const Result mixed = train_checked(decoder(4), "pipe:microbatches=2", 4, 2, Precision::mixed);
    EXPECT_LE(mixed.gradient_error, mixed.gradient_tolerance);
}

}  // namespace
}  // namespace rehearse::run
