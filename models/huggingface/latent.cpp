// SPDX-License-Identifier: Apache-2.0
// Multi-head latent attention (DeepSeek-V2 2024, section 2.1), named as Hugging Face's modules. Each head's keys are
// what it makes of the narrow row, and numbers that carry the position, the same for all heads:
//
//   x ─ q_a_proj ─ q_a_layernorm ─ q_b_proj ─ rotary ─────────────────────────────────────► q
//   x ─ kv_a_proj_with_mqa ─┬ latent ─ kv_a_layernorm ─┬ kv_b_proj.keys ───┐
//                           └ position ─ rotary ───────┼──────────────────┴ beside, a head ► k
//                                                      └ kv_b_proj.values ────────────────► v
// kv_b_proj is one dense layer there; cut into its two parts here, of as many weights and operations, so that what
// heads own lies together.
#include "models/huggingface/llama.hpp"

namespace rehearse::models::huggingface {

int latent_attention(Rows& rows, const Config& config, const std::string& name, int from) {
    const std::int64_t heads = config.size("num_attention_heads");
    const std::int64_t latent = config.size("kv_lora_rank"), plain = config.size("qk_nope_head_dim");
    const std::int64_t turned = config.size("qk_rope_head_dim"), values = config.size("v_head_dim");
    const std::int64_t size = plain + turned, hidden = rows.width(from),
                       narrow = config.size_unless_null("q_lora_rank", 1536);
    (void)config.size("num_key_value_heads", heads);  // each head makes its own of the narrow row
    const bool bias = config.flag("attention_bias", false);
    int q = 0;
    if (narrow > 0) {
        q = rows.rms_norm(name + ".q_a_layernorm", rows.dense(name + ".q_a_proj", from, narrow, bias));
        q = rows.dense(name + ".q_b_proj", q, heads * size, false);
    } else {
        q = rows.dense(name + ".q_proj", from, heads * size, false);
    }
    // Neighbours, as DeepSeek's own code pairs them; the position lies behind what is plain.
    const Rotation last{.size = size, .turned = turned, .first = plain, .neighbours = true};
    q = rows.rotary(name + ".rotary_q", q, last);
    const int both = rows.dense(name + ".kv_a_proj_with_mqa", from, latent + turned, bias);
    const int row = rows.rms_norm(name + ".kv_a_layernorm", rows.slice(name + ".latent", both, 1, 0, latent));
    const int position = rows.rotary(name + ".rotary_k", rows.slice(name + ".position", both, 1, latent, turned),
                                     {.size = turned, .turned = turned, .neighbours = true});
    const int own = rows.dense(name + ".kv_b_proj.keys", row, heads * plain, false);
    const int v = rows.dense(name + ".kv_b_proj.values", row, heads * values, false);
    NetworkBuilder& b = rows.builder();
    const std::int64_t tokens = rows.rows(from);
    const Rearrangement beside{"pack", {b.shape(own), b.shape(position)}, {tokens, heads * size}, {heads}};
    const int k = b.layer(name + ".keys", beside, {own, position});
    const int made = rows.attention(
        name, q, k, v, {.heads = heads, .key_heads = heads, .head_size = size, .value_size = values, .causal = true});
    return rows.dense(name + ".o_proj", made, hidden, bias);
}

}  // namespace rehearse::models::huggingface
