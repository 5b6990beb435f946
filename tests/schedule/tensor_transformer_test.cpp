// SPDX-License-Identifier: Apache-2.0
// Tensor parallelism of transformers: heads, sequences, vocabularies, and what their stages hand on.
#include "schedule/axes/tensor.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>

#include "core/gathered_again.hpp"
#include "models/models.hpp"
#include "models/zoo/transformer.hpp"
#include "schedule/axes/stages.hpp"
#include "schedule/blocks.hpp"
#include "schedule/plan.hpp"
#include "tests/schedule/configs.hpp"
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

// Llama's block, by three dense layers and two; and Phi-3's, by one each.
std::string blocks_of_llama(std::string_view type, std::int64_t heads, std::int64_t key_heads,
                            std::int64_t words = 96) {
    return fmt::format(R"({{"model_type": "{}", "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2,
                            "num_attention_heads": {}, "num_key_value_heads": {}, "vocab_size": {},
                            "tie_word_embeddings": false}})",
                       type, heads, key_heads, words);
}

std::map<Movement, int> movements_of(const Part& part) {
    std::map<Movement, int> all;
    for (const Layer& layer : part.network.layers) {
        if (const auto* moved = std::get_if<Communication>(&layer.op)) ++all[moved->movement];
    }
    return all;
}

const Layer& named(const Part& part, std::string_view name) {
    return part.network.layers[static_cast<std::size_t>(find_layer(part.network, name).value())];
}
const std::vector<Cut>& cuts_of(const Part& part, std::string_view name) {
    return part.origins[static_cast<std::size_t>(find_layer(part.network, name).value())].cuts;
}

// As Megatron-LM and vLLM cut what makes queries, keys and values in one, or gate and up: of each a rank's part.
TEST(SplitTransformer, CutsFusedProjectionsAsTheirParts) {
    for (const std::int64_t key_heads : {4, 2}) {
        const Part fused = split_tensor(of_config(blocks_of_llama("phi3", 4, key_heads)), {"tensor", 0, 2});
        const Part apart = split_tensor(of_config(blocks_of_llama("llama", 4, key_heads)), {"tensor", 0, 2});
        check(fused.network);
        EXPECT_EQ(movements_of(fused), movements_of(apart));
        EXPECT_EQ(parameters(fused.network), parameters(apart.network));
        EXPECT_EQ(flops(fused.network, Pass::forward), flops(apart.network, Pass::forward));
        const std::string self = "model.layers.1.self_attn.";
        EXPECT_EQ(named(fused, self + "attention").op, named(apart, self + "attention").op);
        EXPECT_EQ(named(fused, self + "keys").output, named(apart, self + "k_proj").output);
        EXPECT_EQ(named(fused, "model.layers.1.mlp.gated").output, named(apart, "model.layers.1.mlp.gated").output);
        EXPECT_THAT(fused.network.notes, testing::IsEmpty());
    }
}

// 32 columns of queries, then 16 of keys and 16 of values; 48 of gate and of up.
TEST(SplitTransformer, SaysWhichColumnsOfAFusedProjectionARankHas) {
    const Part alike = split_tensor(of_config(blocks_of_llama("phi3", 4, 4)), {"tensor", 0, 2});
    const Part fewer = split_tensor(of_config(blocks_of_llama("phi3", 4, 2)), {"tensor", 0, 2});
    const char* qkv = "model.layers.0.self_attn.qkv_proj";
    EXPECT_THAT(cuts_of(alike, qkv), testing::ElementsAre(Cut{0, 1, 0, 3}));
    EXPECT_THAT(cuts_of(fewer, qkv), testing::ElementsAre(Cut{0, 1, 0, 3, {32, 16, 16}}));
    EXPECT_THAT(cuts_of(fewer, "model.layers.0.mlp.gate_up_proj"), testing::ElementsAre(Cut{0, 1, 0, 2}));
    EXPECT_EQ(named(fewer, qkv).output, (Shape{16, 32}));
    EXPECT_EQ(named(fewer, "model.layers.0.self_attn.values").op,
              (Op{Rearrangement{"slice", {{16, 32}}, {16, 8}, {0, 24, 1, 1}}}));
}

// One sum forward for each half of a block, none for queries, keys and values.
TEST(SplitTransformer, CutsFalconAndBloomAsTheyCutHeads) {
    const Network bloom = of_config(R"({"model_type": "bloom", "n_embed": 32, "n_layer": 2, "num_attention_heads": 4,
                                        "vocab_size": 96, "seq_length": 16})");
    const Network falcon = of_config(R"({"model_type": "falcon", "hidden_size": 32, "num_hidden_layers": 2,
                                         "num_attention_heads": 4, "num_kv_heads": 2, "vocab_size": 96,
                                         "new_decoder_architecture": true, "alibi": false, "bias": true})");
    for (const Network& network : {bloom, falcon}) {
        const Part part = split_tensor(network, {"tensor", 0, 2});
        check(part.network);
        const std::map<Movement, int> all = movements_of(part);
        EXPECT_EQ(all.at(Movement::gather), 1);  // of the loss's terms
        EXPECT_EQ(all.at(Movement::sum), 1 + 2 * 2);
        const std::string self = "transformer.h.1.self_attention.query_key_value";
        EXPECT_EQ(std::get<Attention>(named(part, self + ".attention").op).heads, 2);
        EXPECT_EQ(cuts_of(part, self).size(), 2U);  // of weights and biases
    }
}

// A head of keys for all queries: half a head on each rank would be turned by wrong angles. The part says so.
TEST(SplitTransformer, LeavesHeadsWholeThatCannotBeShared) {
    for (const char* type : {"llama", "phi3"}) {
        const Part part = split_tensor(of_config(blocks_of_llama(type, 4, 1)), {"tensor", 0, 2});
        check(part.network);
        EXPECT_EQ(named(part, "model.layers.0.self_attn.rotary_k").output, (Shape{16, 8})) << type;
        EXPECT_EQ(std::get<Attention>(named(part, "model.layers.0.self_attn.attention").op).heads, 4) << type;
        EXPECT_THAT(part.network.notes,
                    testing::ElementsAre(testing::HasSubstr(
                        "each of the 2 ranks along tensor has all of 'model.layers.0.self_attn.attention' and of 1 "
                        "more, ")))
            << type;
    }
}

// As the table's and the tied scores': 301 words on two ranks as 512 with 256 each.
TEST(SplitTransformer, FillsUpAnUntiedHeadToo) {
    const Part uneven = split_tensor(of_config(blocks_of_llama("llama", 4, 4, 301)), {"tensor", 0, 2});
    check(uneven.network);
    EXPECT_EQ(std::get<MatMul>(named(uneven, "lm_head").op).n, 256);
    EXPECT_EQ(std::get<SoftmaxTerms>(named(uneven, "loss.terms").op), (SoftmaxTerms{256, 16, 2, 301}));
    EXPECT_THAT(cuts_of(uneven, "lm_head"), testing::ElementsAre(Cut{0, 1, 0}));
    // 97 words: 128 on each rank would be more than all of them.
    const Part few = split_tensor(of_config(blocks_of_llama("llama", 4, 4, 97)), {"tensor", 0, 2});
    EXPECT_EQ(std::get<MatMul>(named(few, "lm_head").op).n, 97);
}

// BERT's scores share the table and have biases of their own, which lie as the words do.
TEST(SplitTransformer, CutsBiasesOfScoresAsTheWords) {
    for (const std::int64_t words : {300, 301}) {
        const Part part = split_tensor(of_config(fmt::format(R"({{"model_type": "bert", "hidden_size": 32,
            "architectures": ["BertForMaskedLM"], "num_hidden_layers": 1, "num_attention_heads": 4, "vocab_size": {},
            "intermediate_size": 48, "max_position_embeddings": 64}})",
                                                             words)),
                                       {"tensor", 0, 2});
        check(part.network);
        const std::int64_t share = words == 300 ? 150 : 256;
        EXPECT_EQ(named(part, "cls.predictions.decoder.bias").op, (Op{Bias{{16, share}, 1}}));
        EXPECT_THAT(cuts_of(part, "cls.predictions.decoder.bias"), testing::ElementsAre(Cut{0, 0, 0}));
        EXPECT_EQ(std::get<SoftmaxTerms>(named(part, "loss.terms").op).classes, share);
        EXPECT_THAT(part.network.notes, testing::IsEmpty());
    }
}

}  // namespace
}  // namespace rehearse::schedule
