// SPDX-License-Identifier: Apache-2.0
// Tensor parallelism of transformers: heads, sequences, vocabularies, and what their stages hand on.
#include "schedule/axes/tensor.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "core/gathered_again.hpp"
#include "models/models.hpp"
#include "models/zoo/transformer.hpp"
#include "schedule/axes/stages.hpp"
#include "schedule/blocks.hpp"
#include "schedule/plan.hpp"
#include "tests/schedule/examples.hpp"
#include "tests/schedule/two_blocks.hpp"

namespace rehearse::schedule {
namespace {

// Shoeybi et al. 2019, figure 3: queries, keys and values by columns, each with its heads; the projection by rows.
TEST(SplitTransformer, CutsAttentionByHeads) {
    const Part part = split_tensor(two_blocks(), {"tensor", 0, 2});
    check(part.network);
    EXPECT_THAT(layers_and_weights(part), testing::StartsWith("input\n"
                                                              "embedding 6x8 6x8 < input\n"
                                                              "embedding.sum < embedding\n"
                                                              "layer0.attention_norm 8 8 < embedding.sum\n"
                                                              "layer0.qkv.copy < layer0.attention_norm\n"
                                                              "layer0.qkv 8x12 12 < layer0.qkv.copy\n"
                                                              "layer0.attention < layer0.qkv\n"
                                                              "layer0.projection 4x8 < layer0.attention\n"
                                                              "layer0.projection.sum < layer0.projection\n"));
    EXPECT_THAT(layers_and_weights(part), testing::EndsWith("head.scores.copy < head.norm\n"
                                                            "head.scores < head.scores.copy\n"
                                                            "loss.terms < head.scores\n"
                                                            "loss.gather < loss.terms\n"
                                                            "loss < loss.gather\n"));
    const int qkv = *find_layer(part.network, "layer0.qkv");
    EXPECT_THAT(part.origins[static_cast<std::size_t>(qkv)].cuts,
                testing::ElementsAre(Cut{0, 1, 0, 3}, Cut{1, 0, 0, 3}));
    const Layer& scores = part.network.layers[static_cast<std::size_t>(*find_layer(part.network, "head.scores"))];
    EXPECT_EQ(scores.weights_of, *find_layer(part.network, "embedding"));
    EXPECT_EQ(std::get<MatMul>(scores.op).n, 6);
}

// Korthikanti et al. 2022, figure 5: normalization and additions on each rank's rows.
TEST(SplitTransformer, OnSequencesGivesEachRankItsRows) {
    const Part part = split_tensor(two_blocks(), {"tensor", 0, 2, true});
    check(part.network);
    EXPECT_THAT(layers_and_weights(part), testing::HasSubstr("layer0.mlp_norm 8 8 < layer0.attention_add\n"
                                                             "layer0.fc1.spread < layer0.mlp_norm\n"
                                                             "layer0.fc1 8x16 16 < layer0.fc1.spread\n"));
    for (std::size_t i = 0; i < part.network.layers.size(); ++i) {
        const Layer& layer = part.network.layers[i];
        if (!std::holds_alternative<LayerNorm>(layer.op) && !std::holds_alternative<Add>(layer.op)) continue;
        EXPECT_EQ(layer.output, (Shape{3, 8})) << layer.name;
        EXPECT_EQ(part.origins[i].summed, (parameters(layer.op) > 0 ? std::vector<int>{0} : std::vector<int>{}))
            << layer.name;
    }
}

// Narayanan et al. 2021, section 3.2, and Korthikanti et al. 2022: two sums of b s h values forward and two backward;
// six where forward is done again; a reduce-scatter and an all-gather in place of each.
TEST(SplitTransformer, CommunicatesAsOftenAsMegatron) {
    using enum CollectiveKind;
    const std::int64_t bsh = 3 * 6 * 8;
    using Count = std::map<CollectiveKind, int>;
    EXPECT_EQ(collectives_of_layer("tensor=2,data=1:microbatch=3", bsh), (Count{{all_reduce, 4}}));
    EXPECT_EQ(collectives_of_layer("tensor=2:recompute=blocks,data=1:microbatch=3", bsh), (Count{{all_reduce, 6}}));
    EXPECT_EQ(collectives_of_layer("tensor=2:recompute=attention,data=1:microbatch=3", bsh), (Count{{all_reduce, 4}}));
    EXPECT_EQ(collectives_of_layer("tensor=2:sequence=on,data=1:microbatch=3", bsh),
              (Count{{reduce_scatter, 4}, {all_gather, 6}}))
        << "section 4.2.2: rows are gathered again for the gradients of both layers that are cut by columns";
}

// The same where queries, keys and values, and gate and up, are layers of their own that read the same rows.
TEST(SplitTransformer, CommunicatesAsOftenForLayersThatReadTheSameRows) {
    using enum CollectiveKind;
    using Count = std::map<CollectiveKind, int>;
    const Network network =
        models::load_network(REHEARSE_TEST_DATA "/huggingface/my-llama", {.sizes = {{"tokens", 16}}});
    const std::int64_t bsh = 3 * 16 * 2048;
    const std::string block = "model.layers.7.";
    EXPECT_EQ(collectives_of_layer("tensor=2,data=1:microbatch=3", bsh, network, block), (Count{{all_reduce, 4}}));
    EXPECT_EQ(collectives_of_layer("tensor=2:recompute=blocks,data=1:microbatch=3", bsh, network, block),
              (Count{{all_reduce, 6}}));
    EXPECT_EQ(collectives_of_layer("tensor=2:sequence=on,data=1:microbatch=3", bsh, network, block),
              (Count{{reduce_scatter, 4}, {all_gather, 6}}));
}

// Section 4.2.2: what is gathered again comes while the gradient of the input is made, and this leaves while that of
// the weights is.
TEST(SplitTransformer, GathersRowsAgainBesideTheGradientOfTheInput) {
    const Schedule schedule = schedule_of(two_blocks(), "tensor=2:sequence=on", 2);
    const std::vector<Step>& steps = schedule.classes[0].steps;
    const auto find = [&](std::string_view name) {
        const auto found = std::ranges::find(steps, name, &Step::name);
        EXPECT_NE(found, steps.end()) << name;
        return static_cast<int>(found - steps.begin());
    };
    const int gather = find("layer1.fc1.spread:allgather:backward"), data = find("layer1.fc1:backward_data");
    const int scatter = find("layer1.fc1.spread:gradient_reducescatter"), weights = find("layer1.fc1:backward_weights");
    EXPECT_LT(gather, data);
    EXPECT_LT(data, scatter);
    EXPECT_LT(scatter, weights);
    const auto waits = [&](int step, int before) {
        return std::ranges::count(steps[static_cast<std::size_t>(step)].after, before) > 0;
    };
    EXPECT_FALSE(waits(data, gather));
    EXPECT_TRUE(waits(weights, gather));
    EXPECT_TRUE(waits(scatter, data));
    EXPECT_FALSE(waits(weights, scatter));
}

Network with_words(std::int64_t words) {
    return models::transformer(
        {.name = "words", .layers = 1, .hidden = 8, .heads = 4, .vocabulary = words, .positions = 6, .keep = 1}, 6);
}

// Its memory is that of every gather: the next one would overwrite what is being sent.
TEST(SplitTransformer, NeverSendsWhatWasGatheredToTheNextStage) {
    const Part part = split_tensor(two_blocks(), {"tensor", 0, 2, true});
    const auto layers = static_cast<int>(part.network.layers.size());
    for (int end = 2; end < layers; ++end) {
        const std::vector<int> ends{end, layers};
        for (const Stage& stage : cut_stages(part, ends, 2, "pipe", false)) {
            check(stage.part.network);
            for (const Layer& layer : stage.part.network.layers) {
                const auto* op = std::get_if<Communication>(&layer.op);
                if (op == nullptr || op->movement != Movement::send) continue;
                const Layer& sent = stage.part.network.layers[static_cast<std::size_t>(layer.inputs.front())];
                EXPECT_FALSE(gathers_again(sent)) << sent.name << ", cut before layer " << end;
            }
        }
    }
}

// A stage may end anywhere in a block: what ranks have pieces or parts of (heads, cut features, a product before its
// sum, a copy whose gradients are not summed yet) is handed on as it is, the rest in pieces that are gathered.
TEST(SplitTransformer, ScattersBetweenStagesWhatAllRanksHave) {
    const Part part = split_tensor(two_blocks(), {"tensor", 0, 2, false});
    const auto layers = static_cast<int>(part.network.layers.size());
    std::int64_t scattered = 0, as_it_is = 0;
    for (int end = 2; end < layers; ++end) {
        const std::vector<int> ends{end, layers};
        for (const Stage& stage : cut_stages(part, ends, 2, "pipe", false, {"tensor", 2})) {
            check(stage.part.network);
            for (const Layer& layer : stage.part.network.layers) {
                const auto* op = std::get_if<Communication>(&layer.op);
                if (op == nullptr || op->movement != Movement::send) continue;
                const Layer& sent = stage.part.network.layers[static_cast<std::size_t>(layer.inputs.front())];
                const auto* slice = std::get_if<Communication>(&sent.op);
                const bool cut = slice != nullptr && slice->movement == Movement::slice;
                (cut ? scattered : as_it_is) += 1;
                if (!cut) continue;
                const Layer& of = stage.part.network.layers[static_cast<std::size_t>(sent.inputs.front())];
                const auto* made = std::get_if<Communication>(&of.op);
                const bool partial = made != nullptr && made->movement == Movement::copy;
                EXPECT_FALSE(partial) << of.name << ": each rank has a part of its gradient";
                EXPECT_EQ(elements(op->shape) * 2, elements(of.output));
            }
        }
    }
    EXPECT_GT(scattered, 5);
    EXPECT_GT(as_it_is, 5);
}

// Megatron-LM's make-vocab-size-divisible-by: 300 words on two ranks lie as they are, 301 as 512 with 256 each.
TEST(SplitTransformer, FillsUpAVocabularyThatRanksCannotShareEvenly) {
    for (const bool sequence : {false, true}) {
        const Part even = split_tensor(with_words(300), {"tensor", 0, 2, sequence});
        const Part uneven = split_tensor(with_words(301), {"tensor", 0, 2, sequence});
        const auto layer = [](const Part& part, const char* name) {
            return part.network.layers[static_cast<std::size_t>(*find_layer(part.network, name))];
        };
        check(even.network);
        check(uneven.network);
        EXPECT_EQ(std::get<Embedding>(layer(even, "embedding").op).vocabulary, 150);
        EXPECT_EQ(std::get<SoftmaxTerms>(layer(even, "loss.terms").op), (SoftmaxTerms{150, 6, 2}));
        EXPECT_EQ(std::get<Embedding>(layer(uneven, "embedding").op).vocabulary, 256);
        EXPECT_EQ(std::get<MatMul>(layer(uneven, "head.scores").op).n, 256);
        EXPECT_EQ(std::get<SoftmaxTerms>(layer(uneven, "loss.terms").op), (SoftmaxTerms{256, 6, 2, 301}));
    }
}

// Rows that no word has may be chosen by who does not know of them: the table stays whole, and its rows of the sequence
// are not what shares its weights.
TEST(SplitTransformer, LeavesATableWholeWhereSomebodyElseReadsItsScores) {
    Network network = with_words(301);
    std::get<SoftmaxLoss>(network.layers.back().op).class_weights.assign(301, 1.0);
    for (const bool sequence : {false, true}) {
        const Part part = split_tensor(network, {"tensor", 0, 2, sequence});
        check(part.network);
        const Layer& scores = part.network.layers[static_cast<std::size_t>(*find_layer(part.network, "head.scores"))];
        EXPECT_EQ(scores.weights_of, *find_layer(part.network, "embedding"));
    }
}

// Of a block of Llama 3 on 8 ranks, each has 4 of 32 heads and 1 of the 8 that these share; queries, keys and values
// read the same copied rows, as gate and up do, so that backward sums twice a block, and forward as often.
TEST(SplitTransformer, SharedKeysGoWithTheirHeadsAndReadersShareOneSum) {
    const Network network = models::load_network("llama3-8b@16");
    const Part part = split_tensor(network, {"tensor", 0, 8});
    check(part.network);
    const auto op_of = [&](std::string_view name) {
        return part.network.layers[static_cast<std::size_t>(find_layer(part.network, name).value())].op;
    };
    const std::string self = "model.layers.3.self_attn.";
    EXPECT_EQ(op_of(self + "k_proj"), Op(MatMul{16, 128, 4096, false}));
    Attention heads{4, 16, 16, 128, true};
    heads.key_heads = 1;
    EXPECT_EQ(op_of(self + "attention"), Op(heads));
    EXPECT_EQ(op_of("model.layers.3.mlp.gated"), Op(Elementwise{"mul", {16, 1792}, {{16, 1792}, {16, 1792}}}));
    std::map<Movement, int> in_block;
    for (const Layer& layer : part.network.layers) {
        const auto* moved = std::get_if<Communication>(&layer.op);
        if (moved != nullptr && layer.name.starts_with("model.layers.3.")) ++in_block[moved->movement];
    }
    EXPECT_EQ(in_block, (std::map<Movement, int>{{Movement::copy, 2}, {Movement::sum, 2}}));
    const Part rows = split_tensor(network, {.name = "tensor", .index = 0, .parts = 8, .sequence = true});
    check(rows.network);
    in_block.clear();
    for (const Layer& layer : rows.network.layers) {
        const auto* moved = std::get_if<Communication>(&layer.op);
        if (moved != nullptr && layer.name.starts_with("model.layers.3.")) ++in_block[moved->movement];
    }
    EXPECT_EQ(in_block, (std::map<Movement, int>{{Movement::all_gather, 2}, {Movement::reduce_scatter, 2}}));
}

// Latent attention: what is narrow is on all ranks, what heads own is on theirs.
TEST(SplitTransformer, CutsTheHeadsOfLatentAttention) {
    const Network network = models::load_network("deepseek-v2@16");
    const Part part = split_tensor(network, {"tensor", 0, 8});
    check(part.network);
    const int at = find_layer(part.network, "model.layers.1.self_attn.attention").value();
    Attention heads{16, 16, 16, 192, true};
    heads.value_size = 128;
    EXPECT_EQ(part.network.layers[static_cast<std::size_t>(at)].op, Op(heads));
}

}  // namespace
}  // namespace rehearse::schedule
