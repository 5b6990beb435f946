// SPDX-License-Identifier: Apache-2.0
// A block of a decoder as Llama has it (Touvron et al. 2023), named as Hugging Face's modules:
//
//   x ─ input_layernorm ─ q_proj, k_proj, v_proj ─ rotary ─ attention ─ o_proj ─ + x ─ post_attention_layernorm ─ mlp ─
//   +
//
// Mistral, Qwen2 and Qwen3 differ by biases and a normalization of each head's queries and keys; Mixtral, Qwen-MoE and
// DeepSeek have a mixture of experts in place of the mlp (experts.cpp), DeepSeek latent attention (latent.cpp). Phi-3
// makes queries, keys and values by one dense layer, Gemma scales its embeddings, and Gemma 2 normalizes what attention
// and the mlp make, too.
#include "models/huggingface/llama.hpp"

#include <cmath>

#include <fmt/format.h>

#include "models/huggingface/families.hpp"

namespace rehearse::models::huggingface {
namespace {

// What model types take where their config says nothing: their configuration classes' defaults.
struct Habits {
    bool qkv_bias = false, normed_heads = false, latent = false;
    std::int64_t key_heads = 0, head_size = 0;  // 0: as many as heads; the width over the heads
    bool fused = false, gemma = false, normed_results = false;
};

Habits habits_of(const std::string& type) {
    if (type == "mistral") return {.key_heads = 8};
    if (type == "mixtral") return {.key_heads = 8};
    if (type == "qwen2") return {.qkv_bias = true, .key_heads = 32};
    if (type == "qwen2_moe") return {.qkv_bias = true, .key_heads = 16};
    if (type == "qwen3") return {.normed_heads = true, .key_heads = 32, .head_size = 128};
    if (type == "qwen3_moe") return {.normed_heads = true, .key_heads = 4};
    if (type == "gemma") return {.key_heads = 16, .head_size = 256, .gemma = true};
    if (type == "gemma2") return {.key_heads = 4, .head_size = 256, .gemma = true, .normed_results = true};
    if (type == "phi3") return {.fused = true};
    if (type.starts_with("deepseek")) return {.latent = true};
    return {};
}

class Decoder {
public:
    Decoder(const Request& request, std::int64_t tokens)
        : c_(request.config),
          type_(c_.text("model_type", "")),
          habits_(habits_of(type_)),
          b_(request.name, Input{{tokens}, c_.size("vocab_size")}),
          rows_(c_, b_),
          hidden_(c_.size("hidden_size")) {}

    Network build() {
        const Embedding table{b_.shape(0).front(), c_.size("vocab_size"), hidden_};
        const int embedding = b_.layer("model.embed_tokens", table, {NetworkBuilder::input});
        int x = habits_.gemma ? scaled("model.embed_tokens.scale", embedding, std::sqrt(static_cast<double>(hidden_)))
                              : dropped("model.embed_dropout", embedding, "embd_pdrop");
        const std::int64_t layers = layers_of(c_, "num_hidden_layers");
        for (std::int64_t i = 0; i < layers; ++i) x = block(fmt::format("model.layers.{}", i), i, x);
        x = rows_.rms_norm("model.norm", x);
        const bool tied = c_.flag("tie_word_embeddings", habits_.gemma);
        x = tied ? b_.tied_dense("lm_head", x, embedding) : rows_.dense("lm_head", x, c_.size("vocab_size"), false);
        if (const double cap = c_.number("final_logit_softcapping", 0); cap > 0) {
            x = scaled("lm_head.softcapping", x, 1 / cap);
            x = b_.layer("lm_head.softcapping.tanh", Activation{Nonlinearity::tanh, b_.shape(x)}, {x});
            x = scaled("lm_head.softcapping.times", x, cap);
        }
        rows_.word_loss(x);
        return b_.build();
    }

private:
    int scaled(const std::string& name, int from, double by) {
        const Shape shape = b_.shape(from);
        return b_.layer(name, Elementwise{.function = "mul", .shape = shape, .inputs = {shape}, .numbers = {by}},
                        {from});
    }

    // Of what the config of Phi-3 alone says.
    int dropped(const std::string& name, int from, std::string_view key) {
        return habits_.fused ? rows_.dropout(name, from, c_.number(key, 0)) : from;
    }

    int block(const std::string& name, std::int64_t index, int x) {
        const int normed = rows_.rms_norm(name + ".input_layernorm", x);
        const std::string self = name + ".self_attn";
        int y = habits_.latent ? latent_attention(rows_, c_, self, normed) : attention(self, normed);
        if (habits_.normed_results) y = rows_.rms_norm(name + ".post_attention_layernorm", y);
        x = b_.add(self + ".add", x, dropped(name + ".resid_attn_dropout", y, "resid_pdrop"));
        const int after = rows_.rms_norm(
            name + (habits_.normed_results ? ".pre_feedforward_layernorm" : ".post_attention_layernorm"), x);
        const std::string mixture = mixture_name(c_, type_, index);
        y = mixture.empty() ? mlp(name + ".mlp", after) : experts(rows_, c_, type_, name + "." + mixture, after);
        if (habits_.normed_results) y = rows_.rms_norm(name + ".post_feedforward_layernorm", y);
        y = dropped(name + ".resid_mlp_dropout", y, "resid_pdrop");
        return b_.add(name + (mixture.empty() ? ".mlp" : "." + mixture) + ".add", x, y);
    }

    int mlp(const std::string& name, int from) {
        const std::int64_t inner = c_.size("intermediate_size");
        if (habits_.fused) return rows_.gated_at_once(name, from, inner);
        if (!habits_.gemma) return rows_.gated(name, from, inner, c_.flag("mlp_bias", false));
        c_.text("hidden_act", "");  // an older key, which transformers no longer follows
        return rows_.gated(name, from, inner, false, "hidden_activation", "gelu_pytorch_tanh");
    }

    int attention(const std::string& name, int from) {
        const std::int64_t heads = c_.size("num_attention_heads");
        const std::int64_t key_heads =
            c_.size("num_key_value_heads", habits_.key_heads == 0 ? heads : habits_.key_heads, 1);
        evenly(c_, heads, key_heads, "num_key_value_heads");
        std::int64_t size = c_.size("head_dim", habits_.head_size, 1);
        if (size == 0) size = evenly(c_, hidden_, heads, "num_attention_heads");
        const bool bias = c_.flag("attention_bias", habits_.qkv_bias);
        int q = 0, k = 0, v = 0;
        if (habits_.fused) {
            const int all = rows_.dense(name + ".qkv_proj", from, (heads + 2 * key_heads) * size, false);
            const std::size_t last = b_.shape(all).size() - 1;
            q = rows_.slice(name + ".queries", all, last, 0, heads * size);
            k = rows_.slice(name + ".keys", all, last, heads * size, key_heads * size);
            v = rows_.slice(name + ".values", all, last, (heads + key_heads) * size, key_heads * size);
        } else {
            q = rows_.dense(name + ".q_proj", from, heads * size, bias);
            k = rows_.dense(name + ".k_proj", from, key_heads * size, bias);
            v = rows_.dense(name + ".v_proj", from, key_heads * size, bias);
        }
        if (habits_.normed_heads) {
            q = rows_.rms_norm(name + ".q_norm", q, size);
            k = rows_.rms_norm(name + ".k_norm", k, size);
        }
        const int made =
            rows_.attention(name, q, k, v,
                            {.heads = heads,
                             .key_heads = key_heads,
                             .head_size = size,
                             .value_size = size,
                             .causal = true,
                             .rotary = habits_.fused ? c_.turned("partial_rotary_factor", 1, size) : size});
        return rows_.dense(name + ".o_proj", made, hidden_, bias && !habits_.qkv_bias);
    }

    const Config& c_;
    std::string type_;
    Habits habits_;
    NetworkBuilder b_;
    Rows rows_;
    std::int64_t hidden_;
};

// Attention of a window is costed as that of all tokens before: exact while a sample is no longer than the window.
void say_windows(const Request& request, std::int64_t tokens) {
    const std::string type = request.config.text("model_type", "");
    const bool used = request.config.flag("use_sliding_window", !type.starts_with("qwen"));
    const bool always = type == "mistral" || type == "gemma2";  // unless null
    const std::int64_t window = request.config.size_unless_null("sliding_window", always ? 4096 : 0);
    if (!used || window == 0 || window >= tokens) return;
    request.notes.push_back(
        fmt::format("attention sees all tokens before, not the last {} (sliding_window) alone: a bound", window));
}

}  // namespace

Network llama(const Request& request) {
    only_architectures(request,
                       {"LlamaForCausalLM", "MistralForCausalLM", "MixtralForCausalLM", "Qwen2ForCausalLM",
                        "Qwen3ForCausalLM", "Qwen2MoeForCausalLM", "Qwen3MoeForCausalLM", "DeepseekV2ForCausalLM",
                        "DeepseekV3ForCausalLM", "GemmaForCausalLM", "Gemma2ForCausalLM", "Phi3ForCausalLM"});
    if (request.config.number("attn_logit_softcapping", 0) > 0)
        request.notes.push_back("scores of attention are not capped (attn_logit_softcapping)");
    const std::int64_t tokens = unbounded_tokens_of(request, "max_position_embeddings");
    say_windows(request, tokens);
    if (const std::int64_t more = request.config.size("num_nextn_predict_layers", 0); more > 0) {
        request.notes.push_back(
            fmt::format("without the {} layers that predict tokens after the next (num_nextn_predict_layers)", more));
    }
    return Decoder(request, tokens).build();
}

}  // namespace rehearse::models::huggingface
