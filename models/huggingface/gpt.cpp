// SPDX-License-Identifier: Apache-2.0
// GPT-2 (Radford et al. 2019) and GPT-NeoX (Black et al. 2022), named as Hugging Face's modules.
#include <fmt/format.h>

#include "core/error.hpp"
#include "models/huggingface/families.hpp"
#include "models/huggingface/rows.hpp"

namespace rehearse::models::huggingface {
namespace {

// One dense layer makes queries, keys and values, side by side.
int packed_attention(Rows& rows, const std::string& name, int qkv, std::int64_t heads, std::int64_t size) {
    const std::int64_t tokens = rows.rows(qkv);
    const Attention op{heads, tokens, tokens, size, true, true};
    return rows.builder().layer(name + ".attention", op, {qkv});
}

int gpt2_block(Rows& rows, const Config& c, const std::string& name, int x) {
    const std::int64_t hidden = c.size("n_embd"), heads = c.size("n_head"), inner = c.size("n_inner", 4 * hidden, 1);
    const double dropped = c.number("resid_pdrop", 0.1);
    NetworkBuilder& b = rows.builder();
    const int qkv = rows.dense(name + ".attn.c_attn", rows.layer_norm(name + ".ln_1", x), 3 * hidden, true);
    int y = packed_attention(rows, name + ".attn", qkv, heads, evenly(c, hidden, heads, "n_head"));
    y = rows.dropout(name + ".attn.resid_dropout", rows.dense(name + ".attn.c_proj", y, hidden, true), dropped);
    x = b.add(name + ".attn.add", x, y);
    y = rows.dense(name + ".mlp.c_fc", rows.layer_norm(name + ".ln_2", x), inner, true);
    y = rows.function(name + ".mlp.act", y, "activation_function", "gelu_new");
    y = rows.dropout(name + ".mlp.dropout", rows.dense(name + ".mlp.c_proj", y, hidden, true), dropped);
    return b.add(name + ".mlp.add", x, y);
}

int neox_block(Rows& rows, const Config& c, const std::string& name, int x) {
    const std::int64_t hidden = c.size("hidden_size"), heads = c.size("num_attention_heads");
    const std::int64_t size = evenly(c, hidden, heads, "num_attention_heads");
    const bool bias = c.flag("attention_bias", true);
    const double dropped = c.number("hidden_dropout", 0);
    NetworkBuilder& b = rows.builder();
    const std::string self = name + ".attention";
    const int qkv =
        rows.dense(self + ".query_key_value", rows.layer_norm(name + ".input_layernorm", x), 3 * hidden, bias);
    const std::int64_t turned = c.turned("rotary_pct", 0.25, size);
    // Of queries and keys, which lie before the values.
    const int rows_turned =
        turned > 0 ? rows.rotary(self + ".rotary", qkv, {.size = size, .turned = turned}, 2 * heads) : qkv;
    int y = packed_attention(rows, self, rows_turned, heads, size);
    y = rows.dropout(name + ".post_attention_dropout", rows.dense(self + ".dense", y, hidden, bias), dropped);
    const bool parallel = c.flag("use_parallel_residual", true);  // both halves read the same rows
    const int middle = parallel ? x : b.add(self + ".add", x, y);
    int z = rows.layer_norm(name + ".post_attention_layernorm", middle);
    z = rows.dense(name + ".mlp.dense_h_to_4h", z, c.size("intermediate_size"), true);
    z = rows.function(name + ".mlp.act", z, "hidden_act", "gelu");
    z = rows.dropout(name + ".post_mlp_dropout", rows.dense(name + ".mlp.dense_4h_to_h", z, hidden, true), dropped);
    if (!parallel) return b.add(name + ".mlp.add", middle, z);
    return b.layer(name + ".add", Add{b.shape(x), 3}, {x, y, z});
}

}  // namespace

Network gpt2(const Request& request) {
    only_architectures(request, {"GPT2LMHeadModel", "GPT2Model"});
    const Config& c = request.config;
    c.only("add_cross_attention", false, "attention to what an encoder made is not built");
    const std::int64_t positions = c.size("n_positions", 1024), tokens = tokens_of(request, "n_positions");
    const Embedding table{tokens, c.size("vocab_size"), c.size("n_embd"), positions};
    NetworkBuilder b(request.name, Input{{tokens}, table.vocabulary});
    Rows rows{c, b};
    const int embedding = b.layer("transformer.wte", table, {NetworkBuilder::input});
    int x = rows.dropout("transformer.drop", embedding, c.number("embd_pdrop", 0.1));
    for (std::int64_t i = 0; i < layers_of(c, "n_layer"); ++i)
        x = gpt2_block(rows, c, fmt::format("transformer.h.{}", i), x);
    x = rows.layer_norm("transformer.ln_f", x);
    const bool tied = c.flag("tie_word_embeddings", true);
    rows.word_loss(tied ? b.tied_dense("lm_head", x, embedding) : rows.dense("lm_head", x, table.vocabulary, false));
    return b.build();
}

Network gpt_neox(const Request& request) {
    only_architectures(request, {"GPTNeoXForCausalLM"});
    const Config& c = request.config;
    const std::int64_t tokens = unbounded_tokens_of(request, "max_position_embeddings");
    const Embedding table{tokens, c.size("vocab_size"), c.size("hidden_size")};
    NetworkBuilder b(request.name, Input{{tokens}, table.vocabulary});
    Rows rows{c, b};
    const int embedding = b.layer("gpt_neox.embed_in", table, {NetworkBuilder::input});
    int x = rows.dropout("gpt_neox.emb_dropout", embedding, c.number("hidden_dropout", 0));
    for (std::int64_t i = 0; i < layers_of(c, "num_hidden_layers"); ++i)
        x = neox_block(rows, c, fmt::format("gpt_neox.layers.{}", i), x);
    x = rows.layer_norm("gpt_neox.final_layer_norm", x);
    const bool tied = c.flag("tie_word_embeddings", false);
    rows.word_loss(tied ? b.tied_dense("embed_out", x, embedding)
                        : rows.dense("embed_out", x, table.vocabulary, false));
    return b.build();
}

}  // namespace rehearse::models::huggingface
