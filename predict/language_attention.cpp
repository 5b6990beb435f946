// SPDX-License-Identifier: Apache-2.0
// Attention of a block between its two products.
#include <algorithm>

#include "predict/language_block.hpp"

namespace rehearse::predict {

namespace {

constexpr double backward_of_attention = 2.5;  // products of its backward pass over those of forward
constexpr double head_of_shares = 128;         // values of a head that a board's shares were measured with
constexpr double half_a_tile = 64;             // keys
// Times that scores cross memory where they are kept (models/software.toml, megatron-deepspeed-2023), backward half as
// often again.
constexpr double score_passes = 9.5;
// FlashAttention-2 is 1.3 to 1.5 times as fast as Triton's kernel forward and about twice backward (Dao 2023, section
// 4.1, https://arxiv.org/abs/2307.08691).
constexpr double flash_over_triton_forward = 1.4, flash_over_triton_backward = 2;

double number(std::int64_t value) { return static_cast<double>(value); }

}  // namespace

// Causal: half of the scores, or within a window the keys of it and, in the mean, half a tile of 128 beyond. A score
// takes its products, of as many values as its key and its value have, and an exponential, which boards make at a rate
// of their own (Shah et al. 2024, section 3.1); the shares are of heads of 128 values and contain both. Products in 8
// bits take half as long, the exponential does not.
void LanguageBlock::fused_attention(Work& work, double key, double value, double heads, bool windowed) const {
    const double keys = number(m_.sequence) / 2;
    double scores = tokens_ * heads * (windowed ? std::min(keys, number(m_.window) + half_a_tile) : keys);
    // PyTorch's ring gives its ranks consecutive parts of the sequence: the last one's queries see nearly all keys.
    if (p_.is_pytorch()) scores *= 2 - 1 / number(p_.context);
    AttentionShares shares = p_.is_pytorch() && !p_.library_attention ? board_.flash : board_.library;
    if (p_.attention == AttentionKernel::triton) {
        shares = {board_.flash.forward / flash_over_triton_forward, board_.flash.backward / flash_over_triton_backward};
    }
    const FlopRate peak = device_.peak.at(p_.row_type()).value * (key > head_of_shares ? board_.wide : 1);
    const bool known = board_.exponentials > 0 && board_.measured_exponentials > 0;
    const double one = known ? 1 / board_.exponentials : 0, measured = known ? 1 / board_.measured_exponentials : 0;
    const double counted = known ? std::max(key + value, 2 * head_of_shares) : key + value;
    const auto pass = [&](double products, double share) {
        const double all = (Flops{products * counted} / (peak * share)).value;
        const double multiplied = (all - measured) * (key + value) / counted / (p_.attention_8bit ? 2 : 1);
        return Seconds{scores * (multiplied + one)};
    };
    work.attention += {pass(2, shares.forward), pass(2 * backward_of_attention, shares.backward)};
}

// Two products a head, four backward, of all scores: a mask hides them only afterwards.
void LanguageBlock::kept_attention(Work& work, double size, double heads) const {
    const double rows = number(m_.sequence), count = heads * number(p_.microbatch);
    const TileModel& tiles = tiles_;
    const auto one = [&](double m, double n, double k) {
        return product_time({m, n, k}, static_cast<std::int64_t>(std::max(1.0, count)), tiles, device_, p_.row_type());
    };
    const Seconds pair = one(rows, rows, size) + one(size, rows, rows);
    const Seconds scores = moved(score_passes * tokens_ * rows * heads * element_);
    work.attention += {pair + scores, 2.0 * pair + 1.5 * scores};
}

// Transformer Engine's fused rotation scales no cosines: Megatron-Core falls back to PyTorch's operators, one kernel
// each (apply_rotary_pos_emb and _apply_rotary_pos_emb_bshd of its rope_utils.py, Megatron-LM 00c51e1). Of queries and
// keys, read or written: times cosines 2, half of them negated 1, halves joined 2, times sines 2, added 3, joined with
// the rest, of which there is none, 2. Backward: the products 4, negation 1, halves joined 2, their sum 3, zeros for
// the rest and their sum 4. The fused one's 2 and 4 are counted already.
void LanguageBlock::rotate_scaled(Work& work, double heads, double key_heads) const {
    if (!m_.scaled_rotation || p_.is_pytorch()) return;
    const double values = tokens_ * (heads + key_heads) * number(m_.head_size);
    work.rotation += {moved((12 - 2) * values * element_), moved((14 - 4) * values * element_)};
}

// Queries, keys and values, and attention between its two products; returns the values of its operands.
double LanguageBlock::add_attention(Work& work, std::int64_t index) const {
    const bool windowed = m_.window > 0 && index % 2 == 0;
    const double h = number(m_.hidden), d = number(m_.head_size);
    const double heads = number(m_.heads) / tensor_, key_heads = number(m_.key_heads) / tensor_;
    if (m_.has_latent()) {
        const double q = number(m_.latent.query_rank), kv = number(m_.latent.key_rank), rope = number(m_.latent.rope);
        const double key = d + rope, value = number(m_.latent.value_size);
        multiply(work, tokens_, q + kv + rope, h, 1, Side::none);
        const Seconds before = work.products.forward + work.casts.forward;
        multiply(work, tokens_, heads * key, q, 1, Side::none);
        multiply(work, tokens_, heads * (d + value), kv, 1, Side::none);
        if (p_.again.up_projections) work.again += work.products.forward + work.casts.forward - before;
        multiply(work, tokens_, h, heads * value, 1, Side::scattered);
        fused_attention(work, key, value, heads, windowed);
        work.kernels *= 2;
        return tokens_ * heads * (4 * key + 2 * value);
    }
    if (p_.float8 == Float8Scaling::rowwise && p_.type == DataType::fp8) {
        for (const double some : {heads, key_heads, key_heads}) multiply(work, tokens_, some * d, h, 1, Side::gathered);
    } else {
        multiply(work, tokens_, (heads + 2 * key_heads) * d, h, 1, Side::gathered);
    }
    multiply(work, tokens_, h, heads * d, 1, Side::scattered);
    rotate_scaled(work, heads, key_heads);
    if (p_.attention == AttentionKernel::kept) {
        kept_attention(work, d, heads);
    } else {
        fused_attention(work, d, d, heads, windowed);
    }
    return 2 * tokens_ * (heads + 2 * key_heads) * d;
}

}  // namespace rehearse::predict
