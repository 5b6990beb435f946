// SPDX-License-Identifier: Apache-2.0
// Counts are written out by hand for a decoder of one block: 4 tokens, 2 heads of 4, 11 words.
#include "schedule/axes/context.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fmt/format.h>

#include "core/error.hpp"
#include "models/models.hpp"
#include "models/zoo/transformer.hpp"
#include "schedule/memory.hpp"
#include "schedule/plan.hpp"
#include "tests/schedule/configs.hpp"
#include "tests/schedule/examples.hpp"

namespace rehearse::schedule {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

Network one_block(std::int64_t segments = 0) {
    return models::transformer({.name = "one-block",
                                .kind = models::TransformerKind::decoder,
                                .layers = 1,
                                .hidden = 8,
                                .heads = 2,
                                .vocabulary = 11,
                                .positions = 4,
                                .segments = segments},
                               4);
}

const Layer& named(const Network& network, std::string_view name) {
    for (const Layer& layer : network.layers) {
        if (layer.name == name) return layer;
    }
    throw InputError(fmt::format("no layer '{}'", name));
}

/// "attention all-to-all 48": what moves, in the order of the steps.
std::vector<std::string> moved(const Schedule& schedule) {
    std::vector<std::string> all;
    for (const Step& step : schedule.classes.front().steps) {
        if (const auto* action = std::get_if<Communicate>(&step.action)) {
            all.push_back(fmt::format("{} of {} along {}", to_string(action->kind), action->elements,
                                      name_of(schedule.mesh, action->axis)));
        }
    }
    return all;
}

// Of 3 samples each rank has 2 tokens: 3 x 2 x 24 numbers of queries, keys and values, 3 x 2 x 8 of the result. Then
// gradients of all weights but the 2 x 8 positions that are the rank's own: the table of words 88, 16 of each of three
// norms, 216 + 72 of attention's dense layers, 288 + 264 of the others.
TEST(SplitContext, MovesTwiceForwardAndTwiceBackward) {
    const Schedule schedule = schedule_of(one_block(), "data=1,context=2", 2, 3);
    EXPECT_THAT(moved(schedule),
                ElementsAre("all-to-all of 144 along context", "all-to-all of 48 along context",
                            "all-to-all of 48 along context", "all-to-all of 144 along context",
                            fmt::format("all-reduce of {} along data+context", 88 + 3 * 16 + 216 + 72 + 288 + 264)));
    EXPECT_EQ(parameters(schedule.classes.front().part.network), parameters(schedule.network) - 2 * 8);
    EXPECT_EQ(shards(schedule.mesh), 1);  // ranks that share samples
}

TEST(SplitContext, GivesEachRankItsTokensAndItsHeads) {
    const Network whole = one_block();
    const Part part = split_context(whole, {"context", 0, 2});
    check(part.network);
    EXPECT_EQ(named(part.network, "input").output, (Shape{2}));
    EXPECT_EQ(named(part.network, "layer0.fc1").output, (Shape{2, 32}));
    EXPECT_EQ(named(part.network, "layer0.attention").op,
              (Op{Attention{.heads = 1, .queries = 4, .keys = 4, .head_size = 4, .causal = true, .packed = true}}));
    EXPECT_EQ(named(part.network, "loss").op, (Op{SoftmaxLoss{.classes = 11, .rows = 2}}));
    for (std::size_t i = 0; i < part.network.layers.size(); ++i) {
        const Layer& layer = part.network.layers[i];
        if (parameters(layer.op) == 0) continue;
        if (layer.name == "embedding.positions") {
            EXPECT_THAT(part.origins[i].cuts, ElementsAre(Cut{1, 0, 0, 1}));
            EXPECT_THAT(part.origins[i].summed, IsEmpty());
        } else {
            EXPECT_THAT(part.origins[i].summed, ElementsAre(0)) << layer.name;
        }
    }
}

/// Bytes of activations that a rank of a small GPT holds.
double kept(std::string_view plan, std::int64_t devices) {
    const Schedule schedule = schedule_of(models::load_network("gpt-h64-a4-l4-v128@32"), plan, devices, 4);
    return memory_use(schedule, schedule.classes.front()).activations.value;
}

// Half of each pass, but for moving: what is kept from forward to backward is half as much.
TEST(SplitContext, KeepsHalfOfTheActivations) {
    EXPECT_NEAR(kept("data=1,context=2", 2) / kept("data=1", 1), 0.5, 0.06);
    EXPECT_NEAR(kept("data=1,context=4", 4) / kept("data=1", 1), 0.25, 0.03);
}

// Which of two sentences a token is in goes by its place in the whole: all look up all, and keep their rows.
TEST(SplitContext, LooksUpPartsOfSentencesOnAllRanks) {
    const Part part = split_context(one_block(2), {"context", 0, 2});
    EXPECT_EQ(named(part.network, "embedding").output, (Shape{4, 8}));
    EXPECT_EQ(named(part.network, "embedding.slice").output, (Shape{2, 8}));
    EXPECT_EQ(named(part.network, "head.scores").output, (Shape{4, 11}));  // of the same table
}

// Blocks of keys and values are 3 samples x 2 tokens x 16 numbers, and there is room for two. Forward the other rank's
// come; backward they come again, and the gradients of each rank's go to it in two steps.
TEST(SplitContext, ByARingHandsKeysOnAndTheirGradientsHome) {
    const Schedule schedule = schedule_of(one_block(), "data=1,context=2:ring=on", 2, 3);
    const std::string handed = "halo exchange of 192 along context";
    EXPECT_THAT(moved(schedule),
                ElementsAre(handed, handed, handed, handed,
                            fmt::format("all-reduce of {} along data+context", 88 + 3 * 16 + 216 + 72 + 288 + 264)));
    const Part& part = schedule.classes.front().part;
    EXPECT_EQ(named(part.network, "layer0.attention").op,
              (Op{Attention{.heads = 2, .queries = 2, .keys = 2, .head_size = 4, .causal = true, .packed = true}}));
    for (std::size_t i = 0; i < part.network.layers.size(); ++i) {  // rows r, r + 2: two blocks of one
        if (part.network.layers[i].name != "input") continue;
        EXPECT_THAT(part.origins[i].cuts, ElementsAre(Cut{0, 0, 1, 2}));
    }
}

// What is computed, and what is handed on beside it, as core/ring_attention.hpp says.
TEST(SplitContext, ByARingAttendsToOneBlockWhileTheNextComes) {
    const Network network = models::load_network("gpt-h64-a4-l1-v128@32");
    const Schedule schedule = schedule_of(network, "context=4:ring=on", 4, 1);
    std::vector<std::string> names;
    for (const Step& step : schedule.classes.front().steps) {
        const std::string_view layer = "layer0.attention:";
        if (step.name.starts_with(layer)) names.push_back(step.name.substr(layer.size()));
    }
    EXPECT_THAT(names, ElementsAre("keys1", "forward", "keys2", "forward:turn1", "keys3", "forward:turn2",
                                   "forward:turn3", "keys:backward1", "backward_data", "keys:backward2", "gradients1",
                                   "backward_data:turn1", "keys:backward3", "gradients2", "backward_data:turn2",
                                   "gradients3", "backward_data:turn3", "gradients4"));
}

// Twice and three times two blocks of keys and values, and no more: not all probabilities, and no rows of others.
TEST(SplitContext, ByARingHoldsTwoBlocks) {
    EXPECT_NEAR(kept("data=1,context=4:ring=on", 4) / kept("data=1", 1), 0.25, 0.03);
}

// The heads need not be as many as the ranks.
TEST(SplitContext, ByARingNeedsNoHeads) {
    EXPECT_NO_THROW(split_context(one_block(), {"context", 0, 4, true}));
    EXPECT_THROW(split_context(one_block(), {"context", 0, 3, true}), InputError);
}

// Of 32 tokens rank (c, t) of 2 x 2 has block 2 c + t between the layers that are cut, with all weights of a norm, and
// its 8 rows of the positions; the 16 of its block elsewhere.
TEST(SplitContext, WithSequenceParallelismCutsBlocksOnceMore) {
    const Network network = models::load_network("gpt-h64-a4-l1-v128@32");
    const Schedule schedule = schedule_of(network, "context=2,tensor=2:sequence=on", 4, 1);
    const Part& part = schedule.classes.front().part;
    int norms = 0, positions = 0;
    for (std::size_t i = 0; i < part.network.layers.size(); ++i) {
        const Op& op = part.network.layers[i].op;
        if (const auto* norm = std::get_if<LayerNorm>(&op); norm != nullptr && norm->rows == 8) {
            EXPECT_EQ(part.origins[i].summed.size(), 2U);
            ++norms;
        }
        if (const auto* attention = std::get_if<Attention>(&op)) {
            EXPECT_EQ(attention->queries, 32);
            EXPECT_EQ(attention->heads, 1);
        }
        const auto* sum = std::get_if<Elementwise>(&op);
        if (sum == nullptr || sum->weights.empty()) continue;
        EXPECT_EQ(sum->shape, (Shape{8, 64}));
        ASSERT_FALSE(part.origins[i].cuts.empty());
        EXPECT_EQ(name_of(schedule.mesh, part.origins[i].cuts.back().axis), "context+tensor");
        ++positions;
    }
    EXPECT_EQ(norms, 3);
    EXPECT_EQ(positions, 1);
    for (const auto& [plan, ranks, text] :
         {std::tuple{"tensor=2:sequence=on,context=2", 4, "write 'tensor' right behind 'context'"},
          std::tuple{"context=2:ring=on,tensor=2:sequence=on", 4, "lie in another order (not in this version)"}}) {
        try {
            schedule_of(network, plan, ranks, 1);
            ADD_FAILURE() << plan;
        } catch (const InputError& error) {
            EXPECT_THAT(error.what(), HasSubstr(text));
        }
    }
}

// What takes some columns of each row, or puts numbers beside each head's, works on a rank's rows.
TEST(SplitContext, TakesApartWhatAFusedLayerMakes) {
    for (const char* text : {R"({"model_type": "phi3", "hidden_size": 32, "intermediate_size": 48, "vocab_size": 96,
                                 "num_hidden_layers": 1, "num_attention_heads": 4, "num_key_value_heads": 2})",
                             R"({"model_type": "bloom", "n_embed": 32, "n_layer": 1, "num_attention_heads": 4,
                                 "vocab_size": 96, "seq_length": 16})",
                             R"({"model_type": "falcon", "hidden_size": 32, "num_hidden_layers": 1,
                                 "num_attention_heads": 4, "vocab_size": 96})",
                             R"({"model_type": "deepseek_v3", "hidden_size": 32, "intermediate_size": 64,
                                 "num_hidden_layers": 1, "num_attention_heads": 4, "first_k_dense_replace": 1,
                                 "kv_lora_rank": 16, "q_lora_rank": null, "qk_nope_head_dim": 8, "qk_rope_head_dim": 4,
                                 "v_head_dim": 8, "vocab_size": 96})"}) {
        SCOPED_TRACE(text);
        const Part part = split_context(of_config(text), {"context", 0, 2});
        check(part.network);
        for (const Layer& layer : part.network.layers) {
            if (const auto* heads = std::get_if<Attention>(&layer.op)) {
                EXPECT_EQ(heads->heads, 2);
                EXPECT_EQ(heads->queries, 16);
            }
            if (std::holds_alternative<MatMul>(layer.op) || std::holds_alternative<Rearrangement>(layer.op)) {
                const bool copied = layer.name.ends_with("copies") || layer.name.ends_with("transpose");
                EXPECT_TRUE(copied || layer.output.front() == 8) << layer.name;
            }
            const auto* moved = std::get_if<Communication>(&layer.op);
            EXPECT_TRUE(moved == nullptr || moved->movement == Movement::all_to_all) << layer.name;
        }
    }
}

// A gate reads all tokens, so that all ranks compute its experts alike, and the part says so; what all tokens share,
// with a weight of each, is computed by rows.
TEST(SplitContext, SaysWhatAllRanksCompute) {
    const Part part = split_context(
        of_config(R"({"model_type": "qwen2_moe", "hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 1,
                      "moe_intermediate_size": 16, "shared_expert_intermediate_size": 32, "num_attention_heads": 4,
                      "num_key_value_heads": 2, "num_experts": 4, "num_experts_per_tok": 2, "vocab_size": 96})"),
        {"context", 0, 2});
    check(part.network);
    EXPECT_EQ(named(part.network, "model.layers.0.mlp.shared_expert.weighed").output, (Shape{8, 32}));
    EXPECT_THAT(part.network.notes, ElementsAre(HasSubstr("each of the 2 ranks along context has all of "
                                                          "'model.layers.0.mlp.experts.gate_proj' and of 2 more, ")));
    EXPECT_THAT(split_context(one_block(), {"context", 0, 2}).network.notes, IsEmpty());
}

// ALBERT's blocks have one set of weights: each rank's part of their gradient is of its rows in all of them.
TEST(SplitContext, RepeatsLayersByRows) {
    const Part part = split_context(of_config(R"({"model_type": "albert", "architectures": ["AlbertForMaskedLM"],
        "hidden_size": 32, "embedding_size": 16, "num_hidden_layers": 2, "num_attention_heads": 4,
        "intermediate_size": 64, "vocab_size": 96, "max_position_embeddings": 64})"),
                                    {"context", 0, 2});
    check(part.network);
    int repeated = 0;
    for (const Layer& layer : part.network.layers) {
        if (!std::holds_alternative<Shared>(layer.op)) continue;
        EXPECT_EQ(layer.output.front(), 8) << layer.name;
        EXPECT_GE(layer.weights_of, 0);
        ++repeated;
    }
    EXPECT_EQ(repeated, 8);  // of the second block: four dense layers of attention, two of the mlp, two norms
}

Network with_heads(std::int64_t heads, std::int64_t key_heads) {
    return of_config(fmt::format(R"({{"model_type": "llama", "hidden_size": 60, "intermediate_size": 48,
                                      "num_hidden_layers": 1, "num_attention_heads": {}, "num_key_value_heads": {},
                                      "vocab_size": 96}})",
                                 heads, key_heads));
}

// Of 5 heads of keys, 2 queries each, two ranks have 5 queries each: 2 and a half of the keys, which are 5 of copies.
TEST(SplitContext, CopiesHeadsOfKeysThatRanksWouldShareInParts) {
    const Part part = split_context(with_heads(10, 5), {"context", 0, 2});
    check(part.network);
    const auto& heads = std::get<Attention>(named(part.network, "model.layers.0.self_attn.attention").op);
    EXPECT_EQ(heads.heads, 5);
    EXPECT_EQ(key_heads(heads), 5);
    for (const auto& [ranks, why] :
         {std::pair{4, "('model.layers.0.self_attn.attention' has 10 heads, 5 of keys, and 16 rows)"},
          std::pair{3, "reads 'model.layers.0.self_attn.rotary_q', which has no rows of a rank"}}) {
        try {
            split_context(with_heads(10, 5), {"context", 0, ranks});
            ADD_FAILURE() << ranks;
        } catch (const InputError& error) {
            EXPECT_THAT(error.what(), HasSubstr(why));
        }
    }
}

TEST(SplitContext, RefusesWhatRanksCannotShare) {
    for (const auto& [network, ranks] :
         {std::pair{one_block(), 4}, std::pair{one_block(), 3}, std::pair{two_dense(), 2}}) {
        try {
            split_context(network, {"context", 0, ranks});
            ADD_FAILURE() << network.name << " on " << ranks;
        } catch (const InputError& error) {
            EXPECT_THAT(error.what(), HasSubstr("no attention whose rows and heads"));
        }
    }
}

}  // namespace
}  // namespace rehearse::schedule
