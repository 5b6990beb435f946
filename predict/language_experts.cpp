// SPDX-License-Identifier: Apache-2.0
// Experts of a block: their products, the passes that send their rows, and their biases.
#include <algorithm>
#include <cmath>

#include "predict/language_block.hpp"

namespace rehearse::predict {

namespace {

// Experts have about as many more as these: their router (casts, product, the largest scores, what balances them),
// counts of rows by rank and their copies to the host, permuting, sending and sorting rows and back, two grouped
// products (counted in Megatron-LM 0014f13, megatron/core/transformer/moe/token_dispatcher.py and router.py). Where
// CUDA graphs hold attention and router, these are one, and what sends rows and the products are left.
constexpr double operators_of_experts = 45, operators_beside_graphs = 15;

double number(std::int64_t value) { return static_cast<double>(value); }

}  // namespace

// One product after the other, on a few streams: an expert's weights are read for its rows alone, before them, and its
// gradient is added to a sum that is read and written after them. Beside nothing else, that is: it takes the place of
// the time in which tiles are begun and stored, where it is longer. Of 23 such products of SimuMax's B200, with 128 to
// 9,832 rows, the three passes are met to 4 % in the mean (a test holds ten); hidden, weights would make them 20 % too
// fast (github MooreThreads/SimuMax configs/system/b200_bf16_ceperm.json, group_matmul). Transformer Engine's fused
// kernel does all experts in one, and hides them; it takes none with biases (TransformerEngine 000c273,
// ops/fused/forward_grouped_mlp.py).
Passes LanguageBlock::expert_products(double rows, double columns, double depth, double experts, DataType type) const {
    const TileModel& tiles = type == DataType::fp8 ? tiles_8bit_ : tiles_;
    const TileModel& bare = type == DataType::fp8 ? bare_tiles_8bit_ : bare_tiles_;
    const auto count = static_cast<std::int64_t>(std::max(1.0, experts));
    const double value = size_of(type).value, result = element_;
    const double inputs = rows * depth * experts, results = rows * columns * experts;
    const double weights = depth * columns * experts;
    const double summed = p_.is_pytorch() ? element_ : p_.half_sums ? 2 * element_ : 8;
    const auto one = [&](const ProductSizes& sizes, double alone, double all) {
        const Seconds hidden = std::max(tiles_time(sizes, count, tiles, device_, type), moved(all));
        if (fused_experts()) return hidden;
        return std::max(hidden, tiles_time(sizes, count, bare, device_, type) + moved(alone));
    };
    const double used = value * weights, sums = summed * weights;
    return {one({columns, rows, depth}, used, used + value * inputs + result * results),
            one({depth, rows, columns, Pass::backward_data}, used, used + value * results + result * inputs) +
                one({columns, depth, rows, Pass::backward_weights}, sums, sums + value * (inputs + results))};
}

// Passes over rows as they are sent, forward and backward (Megatron-Core's token_dispatcher.py). To each expert: rows
// are written in the order of ranks (each read once for all its experts), read and written in the order of experts, and
// back the same way; in 8 bits also padded and cut again, since the kernels want multiples of 16 or 32 rows an expert.
// Once to each device: what came is copied to each of its experts there, padded on the way, and back.
void LanguageBlock::dispatch(Work& work, double taken) const {
    const double top = number(m_.top), places = number(p_.experts);
    double passes = 6 + 2 / top;
    if (p_.expert_rows == ExpertRows::once) {
        passes = 2 + 2 * places * (1 - std::pow(1 - 1 / places, top)) / top;
    } else if (p_.type == DataType::fp8) {
        passes += 4;
    }
    const Seconds sent = moved(passes * taken * number(m_.hidden) * element_);
    work.experts += {sent, sent};
}

// Counted in Megatron-Core's TEGroupedMLP (experts.py; AutoModel's is alike). Values of the second product's rows: the
// bias times the probability is written; added; joined; backward the gradient of both is written and summed, and the
// parts joined. Where probabilities are f32 - dispatchers that send a row once know no others - so is all of this, and
// cast before and after; that each expert's rows are added to by themselves costs the host little, for these are no
// operators of modules. AutoModel does so with the first product, too, without probabilities. A clamped gate is cut
// into halves, clamped, and joined in kernels of their own (bias_geglu); PyTorch compiles it.
void LanguageBlock::add_biases(Work& work, double taken) const {
    const double values = taken * number(m_.hidden), gate = taken * number(m_.expert_ffn);
    if (m_.biases) {
        const bool wide = p_.expert_rows == ExpertRows::once;
        work.experts += {moved((wide ? 28 : 12) * values), moved((wide ? 40 : 16) * values)};
        const double first = p_.is_pytorch() ? (m_.gated ? 2 : 1) * gate : 0;
        work.experts += {moved(8 * first), moved(6 * first)};
    }
    if (m_.clamped && !p_.is_pytorch()) {
        work.experts += {moved(16 * gate), moved(20 * gate)};
        if (p_.again.activations) work.again += moved(16 * gate);
    }
}

// Returns the values that cross memory between the products of experts.
double LanguageBlock::add_experts(Work& work) const {
    const double h = number(m_.hidden), width = number(m_.expert_ffn), first = m_.gated ? 2 : 1;
    // Ranks of a tensor group send rows of their own to experts, which are whole.
    const double taken = tokens_ / tensor_ * number(m_.top), mine = number(m_.experts) / number(p_.experts);
    const double rows = taken / mine;  // of one expert
    const double shared = feed_forward(work, tokens_, number(m_.expert_ffn * m_.shared_experts) / tensor_, 1);
    work.products += expert_products(rows, first * width, h, mine, p_.type);
    work.products += expert_products(rows, h, width, mine, p_.type);
    if (p_.type == DataType::fp8) {
        // The fused kernels write what they give the second product, and its gradient the first, in 8 bits.
        const double fused = fused_experts() ? 0 : 1;
        cast(work, taken * h, fused * taken * first * width, mine * h * first * width, Side::none);
        cast(work, fused * taken * width, taken * h, mine * h * width, Side::none);
    }
    const double between = fused_experts() ? 0 : (first + 1) * taken * width;
    if (p_.again.activations) work.again += moved(between * element_);
    work.operators += p_.graphs == HostGraphs::parts ? operators_beside_graphs : operators_of_experts;
    work.products += product(tokens_, number(m_.experts), h, 1, p_.row_type());
    if (!m_.has_latent()) work.kernels *= 2;
    dispatch(work, taken);
    add_biases(work, taken);
    return shared + between;
}

}  // namespace rehearse::predict
