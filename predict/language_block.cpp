// SPDX-License-Identifier: Apache-2.0
#include "predict/language_block.hpp"

#include <algorithm>

namespace rehearse::predict {

namespace {

constexpr double backward_of_attention = 2.5;  // products of its backward pass over those of forward
constexpr double kernels_of_block = 20;        // small kernels
constexpr Seconds small_kernel{5e-6};
// The host issues a block's operators one after the other, of which there are about 24 that are not in one kernel with
// others.
constexpr double operators_of_block = 24;
// Experts have about as many more as these: their router (casts, product, the largest scores, what balances them),
// counts of rows by rank and their copies to the host, permuting, sending and sorting rows and back, two grouped
// products (counted in Megatron-LM 0014f13, megatron/core/transformer/moe/token_dispatcher.py and router.py). Where
// CUDA graphs hold attention and router, these are one, and what sends rows and the products are left.
constexpr double operators_of_experts = 45, operators_beside_graphs = 15;
// Times that scores cross memory where they are kept (models/software.toml, megatron-deepspeed-2023), backward half as
// often again.
constexpr double score_passes = 9.5;
// FlashAttention-2 is 1.3 to 1.5 times as fast as Triton's kernel forward and about twice backward (Dao 2023, section
// 4.1, https://arxiv.org/abs/2307.08691).
constexpr double flash_over_triton_forward = 1.4, flash_over_triton_backward = 2;
// Casts that write the other way round reach 1.4 TB/s where others reach 2.2 (github pytorch/pytorch, issue 133242).
constexpr double other_way_round = 2.2 / 1.4;
// Bytes a score: PyTorch's cross-entropy turns them into f32 (read 2, write 4), takes the logarithm of the softmax
// (4 + 4), and backward makes their gradient (4 + 4) and its 16-bit copy (4 + 2). Megatron's is fused.
constexpr double loss_bytes_pytorch = 28, loss_values_megatron = 6;

double number(std::int64_t value) { return static_cast<double>(value); }

TileModel with_shares(const TileModel& chip, double products, double memory) {
    TileModel tiles = chip;
    if (products > 0) tiles.large_tile.value = products;
    if (memory > 0) tiles.memory.value = memory;
    return tiles;
}

}  // namespace

/// A block's kernels without those that are computed again; `input` is of the products' forward pass.
struct LanguageBlock::Work {
    Passes products, attention, casts;
    double kernels = kernels_of_block;
    double operators = operators_of_block;
    Seconds again;  // forward work that backward does once more, beside `recompute`
};

LanguageBlock::LanguageBlock(const LanguageModel& model, const LanguagePlan& plan, const DeviceClass& device,
                             const LanguageBoard& board)
    : m_(model),
      p_(plan),
      device_(device),
      board_(board),
      tiles_(with_shares(*device.tiles, board.products, board.memory)),
      tiles_8bit_(with_shares(*device.tiles, board.products_8bit, board.memory)) {
    tokens_ = number(m_.sequence) / number(p_.context) * number(p_.microbatch);
    tensor_ = number(p_.tensor);
    element_ = size_of(p_.row_type()).value;
    memory_ = device.memory_bandwidth.value * tiles_.memory.value;
}

Passes LanguageBlock::product(double rows, double columns, double depth, double count, DataType type) const {
    const TileModel& tiles = type == DataType::fp8 ? tiles_8bit_ : tiles_;
    const auto one = [&](double m, double n, double k) {
        return product_time({m, n, k}, static_cast<std::int64_t>(std::max(1.0, count)), tiles, device_, type);
    };
    return {one(columns, rows, depth), one(depth, rows, columns) + one(columns, depth, rows)};
}

// Operands of 8-bit products are cast: read for their largest value, read again and written, 2 + 2 + 1 bytes a value
// (weights once less: FSDP casts its share). Products over the other dimension want copies of what was cast the other
// way round. By rows, these are casts of their own, of whole inputs of each product; results of exact sums are scaled
// in a pass of their own (github pytorch/ao, issue 2184).
void LanguageBlock::multiply(Work& work, double rows, double columns, double depth, double count, Side side) const {
    work.products += product(rows, columns, depth, count, p_.type);
    if (p_.type != DataType::fp8) return;
    const double inputs = rows * depth * count, results = rows * columns * count, weights = depth * columns * count;
    if (p_.float8 == Float8Scaling::rowwise) {
        work.casts += {moved(5 * (inputs + weights)),
                       moved(other_way_round * 5 * (inputs + weights + results) + 5 * results + 4 * inputs)};
        return;
    }
    // With a history of largest values one kernel reads a value once and writes it both ways (Transformer Engine).
    // Weights that stay where they are it casts once a step.
    if (p_.float8 == Float8Scaling::delayed) {
        work.casts += {moved(4 * (inputs + (p_.casts_weights_once() ? 0 : weights))), moved(4 * results)};
        return;
    }
    // Before they are gathered rows are cast in shares.
    const auto cast = [&](double values, Side shared) {
        return 5 * values / (p_.sequence_parallel && side == shared ? tensor_ : 1);
    };
    work.casts += {moved(cast(inputs, Side::gathered) + 3 * weights),
                   moved(cast(results, Side::scattered) + other_way_round * 2 * (inputs + results))};
}

// Causal: half of the scores. Attention knows 16-bit and 32-bit products, whatever dense layers have.
void LanguageBlock::fused_attention(Work& work, double key, double value, double heads) const {
    Flops flops{tokens_ * number(m_.sequence) * (key + value) * heads};
    // PyTorch's ring gives its ranks consecutive parts of the sequence: the last one's queries see nearly all keys.
    if (p_.is_pytorch()) flops = (2 - 1 / number(p_.context)) * flops;
    AttentionShares shares = p_.is_pytorch() ? board_.flash : board_.library;
    if (p_.attention == AttentionKernel::triton) {
        shares = {board_.flash.forward / flash_over_triton_forward, board_.flash.backward / flash_over_triton_backward};
    }
    const FlopRate peak = device_.peak.at(p_.row_type()).value * (key > 128 ? board_.wide : 1);
    work.attention += {flops / (peak * shares.forward), backward_of_attention * flops / (peak * shares.backward)};
}

// Two products a head, four backward, of all scores: a mask hides them only afterwards.
void LanguageBlock::kept_attention(Work& work, double size, double heads) const {
    const double rows = number(m_.sequence), count = heads * number(p_.microbatch);
    const TileModel& tiles = tiles_;
    const auto one = [&](double m, double n, double k) {
        return product_time({m, n, k}, static_cast<std::int64_t>(std::max(1.0, count)), tiles, device_, p_.row_type());
    };
    const Seconds pair = one(rows, rows, size) + one(rows, size, rows);
    const Seconds scores = moved(score_passes * tokens_ * rows * heads * element_);
    work.attention += {pair + scores, 2.0 * pair + 1.5 * scores};
}

// Queries, keys and values, and attention between its two products; returns the values of its operands.
double LanguageBlock::add_attention(Work& work) const {
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
        fused_attention(work, key, value, heads);
        work.kernels *= 2;
        return tokens_ * heads * (4 * key + 2 * value);
    }
    if (p_.float8 == Float8Scaling::rowwise && p_.type == DataType::fp8) {
        for (const double some : {heads, key_heads, key_heads}) multiply(work, tokens_, some * d, h, 1, Side::gathered);
    } else {
        multiply(work, tokens_, (heads + 2 * key_heads) * d, h, 1, Side::gathered);
    }
    multiply(work, tokens_, h, heads * d, 1, Side::scattered);
    if (p_.attention == AttentionKernel::kept) {
        kept_attention(work, d, heads);
    } else {
        fused_attention(work, d, d, heads);
    }
    return 2 * tokens_ * (heads + 2 * key_heads) * d;
}

// Returns the values that cross memory between a feed-forward layer's products.
double LanguageBlock::feed_forward(Work& work, double rows, double width, double count) const {
    if (width <= 0 || rows <= 0) return 0;
    const double first = m_.gated ? 2 : 1, h = number(m_.hidden);
    if (p_.float8 == Float8Scaling::rowwise && p_.type == DataType::fp8) {
        for (double i = 0; i < first; ++i) multiply(work, rows, width, h, count, Side::gathered);
    } else {
        multiply(work, rows, first * width, h, count, Side::gathered);
    }
    multiply(work, rows, h, width, count, Side::scattered);
    // One by one, the gate's function writes what its product reads: five values, not three.
    const double apart = p_.is_pytorch() && !p_.compiled && m_.gated ? 5.0 / 3 : 1;
    return apart * (first + 1) * rows * width * count;
}

// Values that cross memory for normalizations, sums and rotations in the forward pass. Megatron's kernels are fused: a
// block's rows eight times. PyTorch compiled: two normalizations read and write and the sums between, nine; one by one
// in f32, 22 values of 16 bits. torchtitan rotates queries and keys as complex f32, which is not compiled: 20 bytes a
// value; keys and values are copied for all heads.
double LanguageBlock::between_products(double own_rows, double rotated) const {
    if (!p_.is_pytorch()) return 8 * own_rows + rotated;
    const double heads = number(m_.heads) / tensor_, key_heads = number(m_.key_heads) / tensor_;
    const double d = tokens_ * number(m_.head_size);
    const double rotation = p_.software == LanguageSoftware::pytorch ? 10 * (heads + key_heads) * d : rotated;
    const double copied = m_.key_heads < m_.heads ? 2 * (heads + key_heads) * d : 0;
    return (p_.compiled ? 9 : 22) * own_rows + rotation + copied;
}

Passes LanguageBlock::with_recomputation(const Work& work, Passes between) const {
    const auto& [products, attention, casts, kernels, operators, again] = work;
    Passes sum = products;
    sum += attention;
    sum += casts;
    sum += between;
    // The device computes while the host issues, unless the program waits for it: Sailor's runs of Megatron-DeepSpeed
    // take the same time longer a block whether micro-batches have one, four or eight samples.
    const Seconds issued = operators * board_.issue;
    if (p_.software == LanguageSoftware::megatron_deepspeed) {
        sum = {sum.forward + issued, sum.backward + 2 * issued};
    } else {
        sum = {std::max(sum.forward, issued), std::max(sum.backward, 2 * issued)};
    }
    sum.backward += again;
    if (p_.recompute == Recomputation::full) sum.backward += sum.forward;
    if (p_.recompute == Recomputation::selective) {
        sum.backward +=
            p_.is_pytorch() ? 0.5 * (products.forward + casts.forward) + between.forward : attention.forward;
    }
    return sum;
}

Passes LanguageBlock::block(std::int64_t index) const {
    const double h = number(m_.hidden);
    Work work;
    const double rotated = add_attention(work);
    double values = between_products(tokens_ * h / tensor_, rotated);
    if (m_.has_experts(index)) {
        // Ranks of a tensor group send rows of their own to experts, which are whole.
        const double taken = tokens_ / tensor_ * number(m_.top), mine = number(m_.experts) / number(p_.experts);
        const double rows = taken * number(p_.experts) / number(m_.experts);  // of one expert
        values += feed_forward(work, tokens_, number(m_.expert_ffn * m_.shared_experts) / tensor_, 1);
        const double between = feed_forward(work, rows, number(m_.expert_ffn), mine);
        values += between + 4 * taken * h;
        if (p_.again.activations) work.again += moved(between * element_);
        work.operators += operators_of_experts;
        work.products += product(tokens_, number(m_.experts), h, 1, p_.row_type());
        if (!m_.has_latent()) work.kernels *= 2;
    } else {
        const Seconds before = work.products.forward + work.casts.forward;
        values += feed_forward(work, tokens_, number(m_.experts > 0 ? m_.dense_ffn : m_.ffn) / tensor_, 1);
        if (p_.again.feed_forward) work.again += work.products.forward + work.casts.forward - before;
    }
    if (p_.again.norms) work.again += moved(4 * tokens_ * h / tensor_ * element_);
    if (p_.graphs == HostGraphs::step) work.operators = 0;
    if (p_.graphs == HostGraphs::parts) work.operators = 1 + (m_.has_experts(index) ? operators_beside_graphs : 0);
    const Seconds between = moved(values * element_) + work.kernels * (p_.is_pytorch() ? 0.5 : 1) * small_kernel;
    return with_recomputation(work, {between, 2.0 * between});
}

Passes LanguageBlock::scores() const {
    const double words = number(m_.vocabulary) / tensor_;
    Passes sum = product(tokens_, words, number(m_.hidden), 1, p_.row_type());
    sum.forward += moved((p_.is_pytorch() ? loss_bytes_pytorch : loss_values_megatron * element_) * tokens_ * words);
    return sum;
}

}  // namespace rehearse::predict
