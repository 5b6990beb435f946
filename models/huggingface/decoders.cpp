// SPDX-License-Identifier: Apache-2.0
// Decoders with layer normalization: OPT (Zhang et al. 2022), BLOOM (Scao et al. 2022), Falcon (Almazrouei et al. 2023)
// and Phi (Li et al. 2023), named as Hugging Face's modules.
#include <fmt/format.h>

#include "models/huggingface/families.hpp"
#include "models/huggingface/rows.hpp"

namespace rehearse::models::huggingface {
namespace {

struct Mlp {
    std::string up, down;
    std::int64_t inner = 0;
    bool bias = true;
    std::string_view key = "hidden_act", function = "gelu";
};

class Decoder {
public:
    Decoder(const Request& request, const Embedding& table)
        : c_(request.config), table_(table), b_(request.name, Input{{table.tokens}, table.vocabulary}), rows_(c_, b_) {}

    int mlp(const std::string& name, const Mlp& mlp, int from) {
        const std::int64_t features = rows_.width(from);
        const int up = rows_.dense(name + mlp.up, from, mlp.inner, mlp.bias);
        return rows_.dense(name + mlp.down, rows_.function(name + mlp.up + ".act", up, mlp.key, mlp.function), features,
                           mlp.bias);
    }

    // One dense layer makes queries, keys and values, side by side.
    int fused(const std::string& name, int from, const Heads& heads, bool bias) {
        const std::int64_t q = heads.heads * heads.head_size, kv = heads.key_heads * heads.head_size;
        const int all = rows_.dense(name, from, q + 2 * kv, bias);
        const std::size_t last = b_.shape(all).size() - 1;
        const int queries = rows_.slice(name + ".queries", all, last, 0, q);
        const int keys = rows_.slice(name + ".keys", all, last, q, kv);
        return rows_.attention(name, queries, keys, rows_.slice(name + ".values", all, last, q + kv, kv), heads);
    }

    Network end(int x, int embedding, const std::string& norm, bool bias) {
        if (!norm.empty()) x = rows_.layer_norm(norm, x);
        const bool tied = c_.flag("tie_word_embeddings", !bias);
        rows_.word_loss(tied ? b_.tied_dense("lm_head", x, embedding)
                             : rows_.dense("lm_head", x, table_.vocabulary, bias));
        return b_.build();
    }

    const Config& c_;
    Embedding table_;
    NetworkBuilder b_;
    Rows rows_;
};

void say_alibi(const Request& request) {
    request.notes.push_back("scores of attention have no bias by distance here (ALiBi): one sum a score less");
}

// Rows for two positions more than there are lie before the first token's.
constexpr std::int64_t unused = 2;

// Where rows are wider than their table, positions are added behind the layer that widens them.
int embedded(Decoder& d, const std::string& name, std::int64_t hidden, int table) {
    if (d.table_.width == hidden) return table;
    const int x = d.rows_.dense(name + ".project_in", table, hidden, false);
    const Shape all{d.c_.size("max_position_embeddings", 2048) + unused, hidden};
    const int places = d.b_.layer(name + ".embed_positions", Parameter{all}, {});
    return d.b_.add(name + ".embed_positions.add", x,
                    d.rows_.slice(name + ".embed_positions.rows", places, 0, unused, d.table_.tokens));
}

}  // namespace

Network opt(const Request& request) {
    only_architectures(request, {"OPTForCausalLM", "OPTModel"});
    const Config& c = request.config;
    const std::int64_t hidden = c.size("hidden_size"), heads = c.size("num_attention_heads"),
                       narrow = c.size("word_embed_proj_dim", hidden),
                       tokens = tokens_of(request, "max_position_embeddings");
    const std::int64_t positions = narrow == hidden ? c.size("max_position_embeddings", 2048) + unused : 0;
    const bool before = c.flag("do_layer_norm_before", true), bias = c.flag("enable_bias", true);
    Decoder d{request, {tokens, c.size("vocab_size"), narrow, positions}};
    const std::string all = "model.decoder";
    const int table = d.b_.layer(all + ".embed_tokens", d.table_, {NetworkBuilder::input});
    int x = embedded(d, all, hidden, table);
    const std::int64_t size = evenly(c, hidden, heads, "num_attention_heads");
    const auto normed = [&](const std::string& name, int from, bool here) {
        return here ? d.rows_.layer_norm(name, from) : from;
    };
    for (std::int64_t i = 0; i < layers_of(c, "num_hidden_layers"); ++i) {
        const std::string name = fmt::format("{}.layers.{}", all, i), self = name + ".self_attn";
        const int from = normed(self + "_layer_norm", x, before);
        const int q = d.rows_.dense(self + ".q_proj", from, hidden, bias);
        const int k = d.rows_.dense(self + ".k_proj", from, hidden, bias);
        const int v = d.rows_.dense(self + ".v_proj", from, hidden, bias);
        int y = d.rows_.attention(
            self, q, k, v, {.heads = heads, .key_heads = heads, .head_size = size, .value_size = size, .causal = true});
        y = d.rows_.dropout(name + ".dropout", d.rows_.dense(self + ".out_proj", y, hidden, bias),
                            c.number("dropout", 0.1));
        x = normed(self + "_layer_norm", d.b_.add(self + ".add", x, y), !before);
        y = normed(name + ".final_layer_norm", x, before);
        y = d.mlp(name, {".fc1", ".fc2", c.size("ffn_dim"), bias, "activation_function", "relu"}, y);
        y = d.rows_.dropout(name + ".fc2.dropout", y, c.number("dropout", 0.1));
        x = normed(name + ".final_layer_norm", d.b_.add(name + ".add", x, y), !before);
    }
    if (before) x = d.rows_.layer_norm(all + ".final_layer_norm", x);
    if (narrow != hidden) x = d.rows_.dense(all + ".project_out", x, narrow, false);
    return d.end(x, table, "", false);
}

Network bloom(const Request& request) {
    only_architectures(request, {"BloomForCausalLM", "BloomModel"});
    const Config& c = request.config;
    const char* width = c.has("n_embed") ? "n_embed" : "hidden_size";
    const char* many = c.has("num_attention_heads") ? "num_attention_heads" : "n_head";
    const char* deep = c.has("num_hidden_layers") ? "num_hidden_layers" : "n_layer";
    const std::int64_t hidden = c.size(width), heads = c.size(many),
                       tokens = unbounded_tokens_of(request, "seq_length");
    Decoder d{request, {tokens, c.size("vocab_size"), hidden}};
    say_alibi(request);
    const int table = d.b_.layer("transformer.word_embeddings", d.table_, {NetworkBuilder::input});
    int x = d.rows_.layer_norm("transformer.word_embeddings_layernorm", table);
    const std::int64_t size = evenly(c, hidden, heads, many);
    const double dropped = c.number("hidden_dropout", 0);
    for (std::int64_t i = 0; i < layers_of(c, deep); ++i) {
        const std::string name = fmt::format("transformer.h.{}", i), self = name + ".self_attention";
        int y = d.rows_.layer_norm(name + ".input_layernorm", x);
        y = d.fused(self + ".query_key_value", y,
                    {.heads = heads, .key_heads = heads, .head_size = size, .value_size = size, .causal = true}, true);
        y = d.rows_.dropout(self + ".dropout", d.rows_.dense(self + ".dense", y, hidden, true), dropped);
        x = d.b_.add(self + ".add", x, y);
        y = d.rows_.layer_norm(name + ".post_attention_layernorm", x);
        y = d.mlp(name + ".mlp", {".dense_h_to_4h", ".dense_4h_to_h", 4 * hidden, true, "hidden_act", "gelu_new"}, y);
        x = d.b_.add(name + ".mlp.add", x, d.rows_.dropout(name + ".mlp.dropout", y, dropped));
    }
    return d.end(x, table, "transformer.ln_f", false);
}

Network falcon(const Request& request) {
    only_architectures(request, {"FalconForCausalLM", "RWForCausalLM"});
    const Config& c = request.config;
    const char* many = c.has("num_attention_heads") ? "num_attention_heads" : "n_head";
    const char* deep = c.has("num_hidden_layers") ? "num_hidden_layers" : "n_layer";
    const std::int64_t hidden = c.size("hidden_size"), heads = c.size(many),
                       tokens = unbounded_tokens_of(request, "max_position_embeddings"),
                       size = evenly(c, hidden, heads, many);
    const bool newer = c.flag("new_decoder_architecture", false), bias = c.flag("bias", false);
    const bool parallel = c.flag("parallel_attn", true), alibi = c.flag("alibi", false);
    const bool one = c.flag("multi_query", true) && !newer;
    const std::int64_t asked = c.size("num_kv_heads", heads, 1), key_heads = newer ? asked : one ? 1 : heads;
    const bool two_norms = newer && c.size("num_ln_in_parallel_attn", 2) == 2;
    evenly(c, heads, key_heads, "num_kv_heads");
    if (alibi) say_alibi(request);
    Decoder d{request, {tokens, c.size("vocab_size"), hidden}};
    const int table = d.b_.layer("transformer.word_embeddings", d.table_, {NetworkBuilder::input});
    const Heads shape{heads, key_heads, size, size, true, alibi ? 0 : size};
    const Mlp mlp{
        ".dense_h_to_4h", ".dense_4h_to_h", c.size("ffn_hidden_size", 4 * hidden, 1), bias, "activation", "gelu"};
    const double dropped = c.number("hidden_dropout", 0);
    int x = table;
    for (std::int64_t i = 0; i < layers_of(c, deep); ++i) {
        const std::string name = fmt::format("transformer.h.{}", i), self = name + ".self_attention";
        const int from = d.rows_.layer_norm(name + (two_norms ? ".ln_attn" : ".input_layernorm"), x);
        int y = d.rows_.dense(self + ".dense", d.fused(self + ".query_key_value", from, shape, bias), hidden, bias);
        if (newer || parallel) {
            const int read = two_norms ? d.rows_.layer_norm(name + ".ln_mlp", x) : from;
            const int z = d.mlp(name + ".mlp", mlp, read);
            if (dropped > 0) {  // of both halves together
                y = d.rows_.dropout(name + ".dropout", d.b_.add(name + ".halves.add", y, z), dropped);
                x = d.b_.add(name + ".add", x, y);
            } else {
                x = d.b_.layer(name + ".add", Add{d.b_.shape(x), 3}, {x, y, z});
            }
            continue;
        }
        x = d.b_.add(self + ".add", x, d.rows_.dropout(self + ".dropout", y, c.number("attention_dropout", 0)));
        y = d.mlp(name + ".mlp", mlp, d.rows_.layer_norm(name + ".post_attention_layernorm", x));
        x = d.b_.add(name + ".mlp.add", x, d.rows_.dropout(name + ".mlp.dropout", y, dropped));
    }
    return d.end(x, table, "transformer.ln_f", false);
}

Network phi(const Request& request) {
    only_architectures(request, {"PhiForCausalLM"});
    const Config& c = request.config;
    const std::int64_t hidden = c.size("hidden_size"), heads = c.size("num_attention_heads"),
                       tokens = unbounded_tokens_of(request, "max_position_embeddings"),
                       size = evenly(c, hidden, heads, "num_attention_heads"),
                       key_heads = c.size("num_key_value_heads", heads, 1);
    evenly(c, heads, key_heads, "num_key_value_heads");
    const std::int64_t turned = c.turned("partial_rotary_factor", 0.5, size);
    const double dropped = c.number("resid_pdrop", 0);
    c.only("qk_layernorm", false, "a normalization of queries and keys");
    Decoder d{request, {tokens, c.size("vocab_size"), hidden}};
    const int table = d.b_.layer("model.embed_tokens", d.table_, {NetworkBuilder::input});
    int x = d.rows_.dropout("model.embed_dropout", table, c.number("embd_pdrop", 0));
    for (std::int64_t i = 0; i < layers_of(c, "num_hidden_layers"); ++i) {
        const std::string name = fmt::format("model.layers.{}", i), self = name + ".self_attn";
        const int from = d.rows_.layer_norm(name + ".input_layernorm", x);
        const int q = d.rows_.dense(self + ".q_proj", from, hidden, true);
        const int k = d.rows_.dense(self + ".k_proj", from, key_heads * size, true);
        const int v = d.rows_.dense(self + ".v_proj", from, key_heads * size, true);
        int y = d.rows_.attention(self, q, k, v, {heads, key_heads, size, size, true, turned});
        y = d.rows_.dropout(name + ".resid_dropout", d.rows_.dense(self + ".dense", y, hidden, true), dropped);
        const Mlp mlp{".fc1", ".fc2", c.size("intermediate_size", 4 * hidden, 1), true, "hidden_act", "gelu_new"};
        const int z = d.rows_.dropout(name + ".mlp.resid_dropout", d.mlp(name + ".mlp", mlp, from), dropped);
        x = d.b_.layer(name + ".add", Add{d.b_.shape(x), 3}, {x, y, z});
    }
    return d.end(x, table, "model.final_layernorm", true);
}

}  // namespace rehearse::models::huggingface
