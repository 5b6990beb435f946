// SPDX-License-Identifier: Apache-2.0
// Keys of a config.json that change a network, and what is taken where they are absent: by transformers' configuration
// classes.
#include <cmath>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/error.hpp"
#include "core/rotary.hpp"
#include "models/huggingface/families.hpp"

namespace rehearse::models {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::Not;
using testing::ThrowsMessage;

// The braces and sizes of a small network of each family, with `more` keys.
Network of(const std::string& type, const std::string& more = "", const ImportOptions& options = {}) {
    const std::string sizes =
        type == "gpt2"  ? R"("n_embd": 16, "n_head": 2, "n_layer": 1, "n_positions": 32)"
        : type == "t5"  ? R"("d_model": 16, "d_kv": 4, "d_ff": 16, "num_layers": 1, "num_heads": 2)"
        : type == "vit" ? R"("hidden_size": 16, "num_attention_heads": 2, "num_hidden_layers": 1, "image_size": 8,
                             "patch_size": 4, "intermediate_size": 16)"
        : type == "swin"
            ? R"("image_size": 16, "patch_size": 4, "embed_dim": 8, "depths": [1], "num_heads": [2], "window_size": 2)"
            : R"("hidden_size": 16, "num_attention_heads": 2, "num_hidden_layers": 1, "intermediate_size": 32,
                 "max_position_embeddings": 32)";
    return huggingface::from_config(
        fmt::format(R"({{"model_type": "{}", "vocab_size": 10, {}{}{}}})", type, sizes, more.empty() ? "" : ", ", more),
        "config.json", "net", options);
}

const Layer& layer_of(const Network& network, std::string_view name) {
    const auto index = find_layer(network, name);
    EXPECT_TRUE(index) << name;
    return network.layers[static_cast<std::size_t>(index.value_or(0))];
}

bool has_layer(const Network& network, std::string_view name) { return find_layer(network, name).has_value(); }

void refuses(const std::string& type, const std::string& more, const std::string& why) {
    EXPECT_THAT([&] { (void)of(type, more); }, ThrowsMessage<InputError>(HasSubstr(why))) << type << more;
}

// modeling_t5.py: sequence_output * model_dim ** -0.5 before a shared table, and scores that nothing divides.
TEST(Keys, OfT5ScaleAsTransformersDoes) {
    const Network network = of("t5");
    const auto factor = [&](std::string_view name) {
        return std::get<Elementwise>(layer_of(network, name).op).numbers.at(0);
    };
    EXPECT_DOUBLE_EQ(factor("lm_head.scale"), 1 / std::sqrt(16.0));
    const std::string cross = "decoder.block.0.layer.1.EncDecAttention";
    EXPECT_DOUBLE_EQ(factor(cross + ".q.scale"), std::sqrt(4.0)) << "what attention divides by";
    EXPECT_TRUE(std::holds_alternative<Attention>(layer_of(network, cross + ".attention").op));
}

TEST(Keys, OfPositionsAndCrossAttentionAreRefused) {
    for (const char* type : {"bert", "roberta", "electra", "albert"}) {
        for (const char* way : {"relative_key", "relative_key_query"})
            refuses(type, fmt::format(R"("position_embedding_type": "{}")", way), "key 'position_embedding_type' is");
    }
    EXPECT_NO_THROW((void)of("bert", R"("position_embedding_type": "absolute")"));
    refuses("bert", R"("is_decoder": true, "add_cross_attention": true)", "key 'add_cross_attention' is true");
    refuses("gpt2", R"("add_cross_attention": true)", "key 'add_cross_attention' is true");
}

TEST(Keys, OfADecoderLetTokensSeeThoseBefore) {
    const auto causal = [](const std::string& type, const std::string& more) {
        const Network network = of(type, more);
        const std::string name = "encoder.layer.0.attention.self.attention";
        return std::get<Attention>(layer_of(network, name).op).causal;
    };
    EXPECT_FALSE(causal("bert", ""));
    EXPECT_TRUE(causal("bert", R"("is_decoder": true)"));
}

TEST(Keys, OfDropoutMakeItsLayers) {
    EXPECT_FALSE(has_layer(of("phi"), "model.layers.0.resid_dropout"));
    const Network phi = of("phi", R"("resid_pdrop": 0.1, "embd_pdrop": 0.1)");
    for (const char* name : {"model.embed_dropout", "model.layers.0.resid_dropout", "model.layers.0.mlp.resid_dropout"})
        EXPECT_TRUE(has_layer(phi, name)) << name;
    EXPECT_TRUE(has_layer(of("phi3", R"("resid_pdrop": 0.1)"), "model.layers.0.resid_attn_dropout"));
    EXPECT_TRUE(has_layer(of("bloom", R"("n_embed": 16, "hidden_dropout": 0.1)"), "transformer.h.0.mlp.dropout"));
    EXPECT_TRUE(has_layer(of("falcon", R"("hidden_dropout": 0.1)"), "transformer.h.0.dropout"));
    EXPECT_THAT(of("llama", R"("resid_pdrop": 0.1)").notes, Contains(HasSubstr("resid_pdrop")));
}

// transformers 5 keeps in rope_parameters what stood beside it.
TEST(Keys, OfRotaryEmbeddingsAreReadWhereverTheyStand) {
    const auto rotation = [](const std::string& type, const std::string& layer, const std::string& more) {
        return *rotation_of(std::get<Elementwise>(layer_of(of(type, more), layer).op));
    };
    const std::string llama = "model.layers.0.self_attn.rotary_q", neox = "gpt_neox.layers.0.attention.rotary";
    EXPECT_EQ(rotation("llama", llama, "").base, 10000);
    EXPECT_EQ(rotation("llama", llama, R"("rope_theta": 500000)").base, 500000);
    EXPECT_EQ(rotation("llama", llama, R"("rope_parameters": {"rope_theta": 500000, "rope_type": "default"})").base,
              500000);
    EXPECT_EQ(rotation("gpt_neox", neox, "").turned, 2);
    EXPECT_EQ(rotation("gpt_neox", neox, R"("rope_parameters": {"partial_rotary_factor": 0.5})").turned, 4);
    EXPECT_EQ(rotation("phi", llama, R"("rope_parameters": {"partial_rotary_factor": 0.25})").turned, 2);
    EXPECT_EQ(rotation("phi3", llama, R"("partial_rotary_factor": 0.75)").turned, 6);
    refuses("llama", R"("head_dim": 7)", "7 numbers of a head are turned by rotary embeddings, which turn pairs");
    refuses("llama", R"("rope_parameters": {"rope_theta": "far"})", "in rope_parameters, not a number");
}

TEST(Keys, OfOneLabelMakeOneScoreWhichIsNotRun) {
    const std::string classes = R"("architectures": ["BertForSequenceClassification"], "num_labels": )";
    for (const auto& [type, more, layer] :
         {std::tuple{"bert", R"("architectures": ["BertForSequenceClassification"], )", "classifier"},
          std::tuple{"vit", "", "classifier"}, std::tuple{"swin", "", "classifier"}}) {
        for (const std::int64_t labels : {1, 3}) {
            const Network network = of(type, fmt::format(R"({}"num_labels": {})", more, labels));
            EXPECT_EQ(std::get<MatMul>(layer_of(network, layer).op).n, labels) << type;
            const auto& told = network.layers.back().given;
            EXPECT_EQ(told != nullptr && told->not_run.find("regression") != std::string::npos, labels == 1) << type;
        }
    }
}

TEST(Keys, OfExpertsHaveTheDefaultsOfTheirTypes) {
    const std::string latent = R"("moe_intermediate_size": 8, "kv_lora_rank": 4, "q_lora_rank": 4,
                                  "qk_nope_head_dim": 4, "qk_rope_head_dim": 4, "v_head_dim": 4)";
    const std::string four = latent + R"(, "n_routed_experts": 4, "num_experts_per_tok": 2)";
    EXPECT_FALSE(has_layer(of("deepseek_v3", four), "model.layers.0.mlp.dispatch")) << "the first three are dense";
    const Network third = of("deepseek_v3", four + R"(, "first_k_dense_replace": 0)");
    EXPECT_EQ(std::get<MatMul>(layer_of(third, "model.layers.0.mlp.shared_experts.up_proj").op).n, 8);
    const Network second = of("deepseek_v2", four);
    EXPECT_EQ(std::get<MatMul>(layer_of(second, "model.layers.0.mlp.shared_experts.up_proj").op).n, 2 * 8);
    EXPECT_FALSE(has_layer(of("deepseek_v2", four + R"(, "n_shared_experts": null)"),
                           "model.layers.0.mlp.shared_experts.up_proj"));
    refuses("deepseek_v2", latent, "key 'num_experts_per_tok' is missing");
    const auto experts = [](const Network& network, const std::string& name) {
        return std::get<MatMul>(layer_of(network, name).op).n;
    };
    const std::string kv = R"("num_key_value_heads": 2)";
    EXPECT_EQ(experts(of("mixtral", kv), "model.layers.0.block_sparse_moe.gate"), 8);
    EXPECT_EQ(experts(of("qwen2_moe", kv), "model.layers.0.mlp.gate"), 60);
    EXPECT_EQ(experts(of("qwen3_moe", kv), "model.layers.0.mlp.gate"), 128);
}

TEST(Keys, ThatAreZeroAreNamed) {
    refuses("llama", R"("num_key_value_heads": 0)", "key 'num_key_value_heads' is 0");
    refuses("llama", R"("head_dim": 0)", "key 'head_dim' is 0");
    refuses("gpt2", R"("n_inner": 0)", "key 'n_inner' is 0");
    refuses("phi", R"("num_key_value_heads": 0)", "key 'num_key_value_heads' is 0");
}

TEST(Keys, OfWindowsCountWhereTheirTypeUsesThem) {
    const auto window = HasSubstr("sliding_window");
    EXPECT_THAT(of("qwen2", R"("sliding_window": 16, "num_key_value_heads": 2)").notes, Not(Contains(window)));
    EXPECT_THAT(of("qwen2", R"("sliding_window": 16, "num_key_value_heads": 2, "use_sliding_window": true)").notes,
                Contains(window));
    EXPECT_THAT(of("mistral", R"("sliding_window": 16, "num_key_value_heads": 2)").notes, Contains(window));
    const ImportOptions longer{.sizes = {{"tokens", 5000}}};
    EXPECT_THAT(of("mistral", R"("num_key_value_heads": 2)", longer).notes, Contains(window)) << "4096 unless null";
    EXPECT_THAT(of("mistral", R"("num_key_value_heads": 2, "sliding_window": null)", longer).notes,
                Not(Contains(window)));
}

TEST(Keys, OfPositionsThatNoTableHoldsAreNoLimit) {
    const Network network = of("llama", "", {.sizes = {{"tokens", 100}}});
    EXPECT_EQ(network.layers.front().output, Shape{100});
    EXPECT_THAT(network.notes, Contains(HasSubstr("100 tokens are more than 32 (max_position_embeddings)")));
    EXPECT_THAT(
        [] {
            (void)of("gpt2", "", {.sizes = {{"tokens", 100}}});
        },
        ThrowsMessage<InputError>(HasSubstr("takes 2 to 32 tokens")));
}

}  // namespace
}  // namespace rehearse::models
