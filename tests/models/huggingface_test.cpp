// SPDX-License-Identifier: Apache-2.0
// Networks from config.json: parameters as published (each with its source), names as Hugging Face's modules, and
// errors that name the key.
#include <filesystem>
#include <fstream>
#include <limits>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "core/error.hpp"
#include "models/huggingface/families.hpp"
#include "models/huggingface/huggingface.hpp"

namespace rehearse::models {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::HasSubstr;
using testing::Property;
using testing::ThrowsMessage;

Network of(const std::string& text, const ImportOptions& options = {}) {
    return huggingface::from_config(text, "config.json", "net", options);
}

Op op_of(const Network& network, std::string_view layer) {
    const auto index = find_layer(network, layer);
    EXPECT_TRUE(index) << layer;
    return index ? network.layers[static_cast<std::size_t>(*index)].op : Op{};
}

struct Published {
    const char* name;
    const char* config;
    std::int64_t parameters;
};
void PrintTo(const Published& it, std::ostream* out) { *out << it.name; }

class Configs : public testing::TestWithParam<Published> {};

TEST_P(Configs, HaveThePublishedParameters) {
    const Network network = of(GetParam().config);
    EXPECT_EQ(parameters(network), GetParam().parameters);
    EXPECT_NO_THROW(check(network));
    EXPECT_TRUE(is_loss(network.layers.back().op));
}

// Totals of the models' safetensors files on huggingface.co, where not said otherwise.
INSTANTIATE_TEST_SUITE_P(
    Published, Configs,
    testing::Values(
        Published{"gpt2", R"({"model_type": "gpt2", "architectures": ["GPT2LMHeadModel"], "n_embd": 768, "n_head": 12,
                              "n_layer": 12, "n_positions": 1024, "vocab_size": 50257, "n_ctx": 1024,
                              "activation_function": "gelu_new"})",
                  124'439'808},
        // transformers' BertModel(config).num_parameters(), with its pooler.
        Published{"bert_base", R"({"model_type": "bert", "hidden_size": 768, "num_attention_heads": 12,
                                   "num_hidden_layers": 12, "intermediate_size": 3072, "vocab_size": 30522,
                                   "max_position_embeddings": 512, "type_vocab_size": 2, "hidden_act": "gelu"})",
                  109'482'240},
        Published{"bert_base_masked",
                  R"({"model_type": "bert", "architectures": ["BertForMaskedLM"], "hidden_size": 768,
                                   "num_attention_heads": 12, "num_hidden_layers": 12, "intermediate_size": 3072,
                                   "vocab_size": 30522, "max_position_embeddings": 512, "type_vocab_size": 2})",
                  109'514'298},
        Published{"llama2_7b", R"({"model_type": "llama", "architectures": ["LlamaForCausalLM"], "hidden_size": 4096,
                                   "intermediate_size": 11008, "num_hidden_layers": 32, "num_attention_heads": 32,
                                   "num_key_value_heads": 32, "vocab_size": 32000, "max_position_embeddings": 4096})",
                  6'738'415'616},
        Published{"mistral_7b", R"({"model_type": "mistral", "hidden_size": 4096, "intermediate_size": 14336,
                                    "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8,
                                    "vocab_size": 32000, "max_position_embeddings": 32768, "sliding_window": 4096})",
                  7'241'732'096},
        Published{"qwen2_7b", R"({"model_type": "qwen2", "hidden_size": 3584, "intermediate_size": 18944,
                                  "num_hidden_layers": 28, "num_attention_heads": 28, "num_key_value_heads": 4,
                                  "vocab_size": 152064, "max_position_embeddings": 131072, "use_sliding_window": false,
                                  "sliding_window": 131072, "tie_word_embeddings": false})",
                  7'615'616'512},
        Published{"qwen2_half_billion", R"({"model_type": "qwen2", "hidden_size": 896, "intermediate_size": 4864,
                                  "num_hidden_layers": 24, "num_attention_heads": 14, "num_key_value_heads": 2,
                                  "vocab_size": 151936, "max_position_embeddings": 32768, "tie_word_embeddings": true})",
                  494'032'768},
        Published{"qwen15_moe", R"({"model_type": "qwen2_moe", "hidden_size": 2048, "intermediate_size": 5632,
                                  "num_hidden_layers": 24, "num_attention_heads": 16, "num_key_value_heads": 16,
                                  "vocab_size": 151936, "max_position_embeddings": 8192, "num_experts": 60,
                                  "num_experts_per_tok": 4, "moe_intermediate_size": 1408, "decoder_sparse_step": 1,
                                  "shared_expert_intermediate_size": 5632})",
                  14'315'784'192},
        // Black et al. 2022, section 2: 20 billion, 20,554,567,680 in EleutherAI's own table.
        Published{"neox_20b", R"({"model_type": "gpt_neox", "hidden_size": 6144, "intermediate_size": 24576,
                                  "num_hidden_layers": 44, "num_attention_heads": 64, "vocab_size": 50432,
                                  "max_position_embeddings": 2048, "rotary_pct": 0.25, "hidden_act": "gelu_fast"})",
                  20'554'567'680},
        // Biderman et al. 2023, table 1: 18,915,328 without the two tables of 50,304 x 512.
        Published{"pythia_70m", R"({"model_type": "gpt_neox", "hidden_size": 512, "intermediate_size": 2048,
                                    "num_hidden_layers": 6, "num_attention_heads": 8, "vocab_size": 50304,
                                    "max_position_embeddings": 2048})",
                  18'915'328 + 2 * 50'304 * 512},
        Published{"t5_small", R"({"model_type": "t5", "architectures": ["T5ForConditionalGeneration"], "d_model": 512,
                                  "d_kv": 64, "d_ff": 2048, "num_layers": 6, "num_heads": 8, "vocab_size": 32128,
                                  "n_positions": 512})",
                  60'506'624},
        Published{"flan_t5_base", R"({"model_type": "t5", "d_model": 768, "d_kv": 64, "d_ff": 2048, "num_layers": 12,
                                      "num_heads": 12, "vocab_size": 32128, "feed_forward_proj": "gated-gelu",
                                      "tie_word_embeddings": false})",
                  247'577'856},
        // With its pooler; 124,697,433 with the head that tells masked words instead.
        Published{"roberta_base", R"({"model_type": "roberta", "hidden_size": 768, "num_attention_heads": 12,
                                  "num_hidden_layers": 12, "intermediate_size": 3072, "vocab_size": 50265,
                                  "max_position_embeddings": 514, "type_vocab_size": 1})",
                  124'645'632},
        Published{"roberta_base_masked", R"({"model_type": "roberta", "architectures": ["RobertaForMaskedLM"],
                                  "hidden_size": 768, "num_attention_heads": 12, "num_hidden_layers": 12,
                                  "intermediate_size": 3072, "vocab_size": 50265, "max_position_embeddings": 514,
                                  "type_vocab_size": 1})",
                  124'697'433},
        Published{"distilbert_base", R"({"model_type": "distilbert", "dim": 768, "n_heads": 12, "n_layers": 6,
                                  "hidden_dim": 3072, "vocab_size": 30522, "max_position_embeddings": 512})",
                  66'362'880},
        Published{"distilbert_base_masked", R"({"model_type": "distilbert", "architectures": ["DistilBertForMaskedLM"],
                                  "dim": 768, "n_heads": 12, "n_layers": 6, "hidden_dim": 3072, "vocab_size": 30522,
                                  "max_position_embeddings": 512})",
                  66'985'530},
        // By its modules: tables of 128 numbers, 12 layers of 789,760, and a discriminator of 66,049.
        Published{"electra_small", R"({"model_type": "electra", "architectures": ["ElectraForPreTraining"],
                                  "hidden_size": 256, "embedding_size": 128, "num_attention_heads": 4,
                                  "num_hidden_layers": 12, "intermediate_size": 1024, "vocab_size": 30522,
                                  "max_position_embeddings": 512, "type_vocab_size": 2})",
                  13'549'057},
        // Lan et al. 2020, table 1: 12 million.
        Published{"albert_base", R"({"model_type": "albert", "hidden_size": 768, "embedding_size": 128,
                                  "num_attention_heads": 12, "num_hidden_layers": 12, "intermediate_size": 3072,
                                  "vocab_size": 30000, "max_position_embeddings": 512, "type_vocab_size": 2})",
                  11'683'584},
        Published{"opt_125m", R"({"model_type": "opt", "hidden_size": 768, "ffn_dim": 3072, "num_attention_heads": 12,
                                  "num_hidden_layers": 12, "vocab_size": 50272, "word_embed_proj_dim": 768,
                                  "max_position_embeddings": 2048})",
                  125'239'296},
        Published{"opt_350m", R"({"model_type": "opt", "hidden_size": 1024, "ffn_dim": 4096, "num_attention_heads": 16,
                                  "num_hidden_layers": 24, "vocab_size": 50272, "word_embed_proj_dim": 512,
                                  "max_position_embeddings": 2048, "do_layer_norm_before": false})",
                  331'196'416},
        Published{"bloom_560m", R"({"model_type": "bloom", "hidden_size": 1024, "n_head": 16, "n_layer": 24,
                                  "vocab_size": 250880, "seq_length": 2048})",
                  559'214'592},
        // With one table; the file has the scores' weights besides, 7,217,189,760 and 41,835,970,560 in all.
        Published{"falcon_7b", R"({"model_type": "falcon", "hidden_size": 4544, "num_attention_heads": 71,
                                  "num_hidden_layers": 32, "vocab_size": 65024, "multi_query": true,
                                  "parallel_attn": true, "bias": false, "alibi": false})",
                  6'921'720'704},
        Published{"falcon_40b", R"({"model_type": "falcon", "hidden_size": 8192, "num_attention_heads": 128,
                                  "num_hidden_layers": 60, "vocab_size": 65024, "new_decoder_architecture": true,
                                  "num_kv_heads": 8, "tie_word_embeddings": false})",
                  41'835'970'560},
        Published{"falcon_rw_1b", R"({"model_type": "falcon", "hidden_size": 2048, "num_attention_heads": 32,
                                  "num_hidden_layers": 24, "vocab_size": 50304, "multi_query": false, "alibi": true,
                                  "parallel_attn": false, "bias": true})",
                  1'311'625'216},
        Published{"gemma_2b", R"({"model_type": "gemma", "hidden_size": 2048, "intermediate_size": 16384,
                                  "num_attention_heads": 8, "num_key_value_heads": 1, "head_dim": 256,
                                  "num_hidden_layers": 18, "vocab_size": 256000, "max_position_embeddings": 8192})",
                  2'506'172'416},
        Published{"gemma2_2b", R"({"model_type": "gemma2", "hidden_size": 2304, "intermediate_size": 9216,
                                  "num_attention_heads": 8, "num_key_value_heads": 4, "head_dim": 256,
                                  "num_hidden_layers": 26, "vocab_size": 256000, "max_position_embeddings": 8192,
                                  "final_logit_softcapping": 30.0, "attn_logit_softcapping": 50.0})",
                  2'614'341'888},
        Published{"phi_2", R"({"model_type": "phi", "hidden_size": 2560, "intermediate_size": 10240,
                                  "num_attention_heads": 32, "num_hidden_layers": 32, "vocab_size": 51200,
                                  "max_position_embeddings": 2048, "partial_rotary_factor": 0.4})",
                  2'779'683'840},
        Published{"phi3_mini", R"({"model_type": "phi3", "hidden_size": 3072, "intermediate_size": 8192,
                                  "num_attention_heads": 32, "num_key_value_heads": 32, "num_hidden_layers": 32,
                                  "vocab_size": 32064, "max_position_embeddings": 4096})",
                  3'821'079'552},
        Published{"deepseek_v2_lite", R"({"model_type": "deepseek_v2", "hidden_size": 2048, "intermediate_size": 10944,
                                  "moe_intermediate_size": 1408, "num_hidden_layers": 27, "num_attention_heads": 16,
                                  "n_shared_experts": 2, "n_routed_experts": 64, "num_experts_per_tok": 6,
                                  "first_k_dense_replace": 1, "moe_layer_freq": 1, "q_lora_rank": null,
                                  "kv_lora_rank": 512, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64,
                                  "v_head_dim": 128, "vocab_size": 102400, "max_position_embeddings": 163840})",
                  15'706'484'224}),
    [](const auto& test) { return std::string{test.param.name}; });

constexpr const char* tiny_llama = R"({"model_type": "llama", "hidden_size": 64, "intermediate_size": 96,
  "num_hidden_layers": 2, "num_attention_heads": 8, "num_key_value_heads": 2, "vocab_size": 100,
  "max_position_embeddings": 128, "rope_theta": 10000.0, "bos_token_id": 1, "torch_dtype": "bfloat16"})";

TEST(Albert, RepeatsOneBlock) {
    const Network network = of(R"({"model_type": "albert", "hidden_size": 8, "embedding_size": 4, "vocab_size": 10,
      "num_attention_heads": 2, "num_hidden_layers": 3, "intermediate_size": 16, "max_position_embeddings": 6})");
    const std::string name = "encoder.albert_layer_groups.0.albert_layers.0.ffn";
    EXPECT_EQ(op_of(network, name), Op(MatMul{6, 16, 8, true}));
    const auto first = find_layer(network, name), third = find_layer(network, name + "#3");
    ASSERT_TRUE(first && third);
    EXPECT_EQ(network.layers[static_cast<std::size_t>(*third)].weights_of, *first);
    EXPECT_EQ(parameters(op_of(network, name + "#3")), 0);
    EXPECT_THAT(
        [] {
            of(R"({"model_type": "albert", "hidden_size": 8, "vocab_size": 10, "num_hidden_groups": 2,
                            "num_attention_heads": 2, "num_hidden_layers": 3, "intermediate_size": 16})");
        },
        ThrowsMessage<InputError>(HasSubstr("num_hidden_groups")));
}

// Of 8 buckets, both ways: 4 for keys before the query, two of one distance each and two of ranges up to 16 rows, and 4
// for keys beyond. In the decoder all 8 are of keys before, and none beyond is seen.
TEST(T5, TellsBucketsOfDistancesAndWhatIsSeen) {
    const Network network = of(R"({"model_type": "t5", "d_model": 8, "d_kv": 4, "d_ff": 8, "num_layers": 1,
                                   "num_heads": 2, "vocab_size": 10, "relative_attention_num_buckets": 8,
                                   "relative_attention_max_distance": 16})",
                               {.sizes = {{"tokens", 20}}});
    const auto given = [&](std::string_view layer) {
        return network.layers[static_cast<std::size_t>(find_layer(network, layer).value())].given;
    };
    const auto bucket = [&](const std::string& half, int query, int key) {
        const auto told = given(half + ".block.0.layer.0.SelfAttention.relative_attention_bias");
        const std::vector<std::int32_t>& places = told->places.at(0);
        EXPECT_EQ(places.size(), 20U * 20 * 2);
        const auto at = static_cast<std::size_t>(20 * query + key);
        EXPECT_EQ(places[2 * at + 1], places[2 * at] + 1) << "a number for each head";
        return places[2 * at] / 2;
    };
    const std::vector<std::pair<int, int>> both_ways{{0, 0}, {1, 1}, {2, 2}, {5, 2}, {6, 3}, {8, 3}, {19, 3}};
    for (const auto& [distance, number] : both_ways) {
        EXPECT_EQ(bucket("encoder", distance, 0), number) << distance;
        EXPECT_EQ(bucket("encoder", 0, distance), distance == 0 ? 0 : 4 + number) << distance;
    }
    for (const auto& [distance, number] : {std::pair{0, 0}, {3, 3}, {4, 4}, {6, 5}, {8, 6}, {12, 7}, {19, 7}}) {
        EXPECT_EQ(bucket("decoder", distance, 0), number) << distance;
        EXPECT_EQ(bucket("decoder", 0, distance), 0) << distance;
    }
    const auto mask = given("decoder.block.0.layer.0.SelfAttention.bias");
    for (int pair = 0; pair < 400; ++pair) {
        const float hidden = mask->fixed.at(0).at(static_cast<std::size_t>(pair));
        EXPECT_EQ(hidden, pair % 20 <= pair / 20 ? 0 : -std::numeric_limits<float>::infinity());
    }
    for (const char* key : {R"("relative_attention_num_buckets": 3)", R"("relative_attention_max_distance": 16)"}) {
        EXPECT_THAT(
            [&] {
                of(fmt::format(R"({{"model_type": "t5", "d_model": 8, "d_kv": 4, "d_ff": 8, "num_layers": 1,
                                    "num_heads": 2, "vocab_size": 10, {}}})",
                               key));
            },
            ThrowsMessage<InputError>(HasSubstr("relative_attention")));
    }
}

TEST(Llama, HasTheModulesOfHuggingFaceAndSharedKeys) {
    const Network network = of(tiny_llama, {.sizes = {{"tokens", 32}}});
    EXPECT_EQ(op_of(network, "model.layers.0.self_attn.q_proj"), Op(MatMul{32, 64, 64, false}));
    EXPECT_EQ(op_of(network, "model.layers.1.self_attn.k_proj"), Op(MatMul{32, 16, 64, false}));
    EXPECT_EQ(op_of(network, "model.layers.1.mlp.down_proj"), Op(MatMul{32, 64, 96, false}));
    Attention heads{8, 32, 32, 8, true};
    heads.key_heads = 2;
    EXPECT_EQ(op_of(network, "model.layers.0.self_attn.attention"), Op(heads));
    // Two tables of 100 x 64; a layer has 64 x (64 + 16 + 16 + 64 + 3 x 96) and two norms of 64; one at the end.
    EXPECT_EQ(parameters(network), 2 * 6400 + 2 * (64 * 448 + 128) + 64);
}

TEST(Config, TakesPositionsForTokensAndSaysSo) {
    const Network network = of(tiny_llama);
    EXPECT_EQ(network.layers.front().output, Shape{128});
    EXPECT_THAT(network.notes, Contains(HasSubstr("128 tokens")));
    const std::string longer = std::string{tiny_llama}.replace(std::string{tiny_llama}.find("128,"), 3, "131072");
    EXPECT_EQ(of(longer).layers.front().output, Shape{8192});
    EXPECT_EQ(of(longer, {.sizes = {{"tokens", 131072}}}).layers.front().output, Shape{131072});
}

TEST(Config, NamesKeysThatItDidNotRead) {
    std::string text = tiny_llama;
    text.insert(1, R"("alibi": true, )");
    EXPECT_THAT(of(text).notes, Contains(AllOf(HasSubstr("not read"), HasSubstr("alibi"))));
    for (const std::string& note : of(tiny_llama).notes) EXPECT_THAT(note, testing::Not(HasSubstr("not read")));
}

// GPT-2's own file, word by word: nothing in it is without a meaning here.
TEST(Config, OfGpt2IsReadToItsEnd) {
    const Network network = of(R"({"activation_function": "gelu_new", "architectures": ["GPT2LMHeadModel"],
      "attn_pdrop": 0.1, "bos_token_id": 50256, "embd_pdrop": 0.1, "eos_token_id": 50256, "initializer_range": 0.02,
      "layer_norm_epsilon": 1e-05, "model_type": "gpt2", "n_ctx": 1024, "n_embd": 768, "n_head": 12, "n_layer": 12,
      "n_positions": 1024, "resid_pdrop": 0.1, "summary_activation": null, "summary_first_dropout": 0.1,
      "summary_proj_to_labels": true, "summary_type": "cls_index", "summary_use_proj": true,
      "task_specific_params": {"text-generation": {"do_sample": true, "max_length": 50}}, "vocab_size": 50257})");
    EXPECT_EQ(network.notes.size(), 1U) << "the tokens that it took";
    EXPECT_EQ(op_of(network, "transformer.h.11.mlp.act"), Op(Elementwise{"gelutanh", {1024, 3072}, {{1024, 3072}}}));
}

TEST(Config, SaysWhatIsWrongByItsKey) {
    const auto refuses = [](const std::string& text, const std::string& why, const ImportOptions& options = {}) {
        EXPECT_THAT([&] { (void)of(text, options); }, ThrowsMessage<InputError>(HasSubstr(why))) << text;
    };
    refuses("{", "config.json:1: no JSON");
    refuses("{\"model_type\": \"llama\", \"vocab_size\": 1e999}", "number overflow parsing '1e999'");
    refuses("[]", "is an object");
    refuses("{}", "key 'model_type' is missing");
    refuses(R"({"model_type": "lama"})", "key 'model_type' is 'lama'");
    refuses("{\n\"model_type\": \"llama\",\n \"vocab_size\": -1}", "config.json:3: key 'vocab_size' is -1");
    refuses(R"({"model_type": "llama"})", "key 'vocab_size' is missing");
    refuses(R"({"model_type": "llama", "architectures": ["LlamaForTokenClassification"]})",
            "key 'architectures' names");
    const auto changed = [](const std::string& from, const std::string& to) {
        std::string text = tiny_llama;
        return text.replace(text.find(from), from.size(), to);
    };
    refuses(changed("\"num_attention_heads\": 8", "\"num_attention_heads\": 7"), "key 'num_key_value_heads' is 2");
    refuses(changed("\"num_hidden_layers\": 2", "\"num_hidden_layers\": 200000"), "at most 10000");
    refuses(changed("\"hidden_size\": 64", "\"hidden_size\": \"64\""), "key 'hidden_size'");
    refuses(changed("\"hidden_size\": 64", "\"hidden_size\": 64, \"hidden_act\": \"snake\""), "is 'snake'");
    // Beyond what a whole number holds, where a conversion has no defined result.
    for (const char* part : {"1e300", "-1", "-1e300", "2e9"}) {
        refuses(
            fmt::format(R"({{"model_type": "phi", "hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 1,
                             "num_attention_heads": 8, "vocab_size": 100, "max_position_embeddings": 64,
                             "partial_rotary_factor": {}}})",
                        part),
            "key 'partial_rotary_factor' is");
        refuses(fmt::format(R"({{"model_type": "gpt_neox", "hidden_size": 64, "intermediate_size": 96,
                             "num_hidden_layers": 1, "num_attention_heads": 8, "vocab_size": 100,
                             "max_position_embeddings": 64, "hidden_act": "gelu", "rotary_pct": {}}})",
                            part),
                "key 'rotary_pct' is");
    }
    refuses(tiny_llama, "--sizes tokens=1: config.json takes 2 or more tokens", {.sizes = {{"tokens", 1}}});
    refuses(R"({"model_type": "gpt2", "n_embd": 8, "n_head": 2, "n_layer": 1, "n_positions": 128, "vocab_size": 10})",
            "--sizes tokens=500: config.json takes 2 to 128 tokens", {.sizes = {{"tokens", 500}}});
    refuses(tiny_llama, "has no such size; it has tokens", {.sizes = {{"rows", 5}}});
}

TEST(Config, IsAFileOrTheFolderThatHoldsIt) {
    const std::filesystem::path folder =
        std::filesystem::path(testing::TempDir()) / ("rehearse-config-" + std::to_string(getpid())) / "tiny-llama";
    std::filesystem::create_directories(folder);
    std::ofstream(folder / "config.json") << tiny_llama;
    for (const std::string& path : {folder.string(), (folder / "config.json").string()}) {
        EXPECT_EQ(load_network(path).name, "tiny-llama");
        EXPECT_EQ(parameters(load_network(path)), parameters(of(tiny_llama)));
    }
    std::filesystem::remove_all(folder.parent_path());
    EXPECT_THROW((void)load_network("nowhere/config.json"), InputError);
}

// Of 8 experts a token goes to 2: of as many multiply-adds as two dense blocks, of as many weights as eight.
TEST(Mixtral, ComputesTheExpertsThatTokensChoose) {
    const Network network = of(R"({"model_type": "mixtral", "hidden_size": 64, "intermediate_size": 96,
        "num_hidden_layers": 1, "num_attention_heads": 4, "num_key_value_heads": 2, "vocab_size": 50,
        "num_local_experts": 8, "num_experts_per_tok": 2, "max_position_embeddings": 32})");
    double experts = 0;
    std::int64_t weights = 0;
    for (const Layer& layer : network.layers) {
        if (!std::holds_alternative<GroupedMatMul>(layer.op)) continue;
        experts += multiply_adds(layer.op);
        weights += parameters(layer.op);
    }
    EXPECT_EQ(experts, 2 * 32 * 3 * 64 * 96);
    EXPECT_EQ(weights, 8 * 3 * 64 * 96);
}

}  // namespace
}  // namespace rehearse::models
