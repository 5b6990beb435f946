// SPDX-License-Identifier: Apache-2.0
#include "predict/language_block.hpp"

#include <algorithm>

namespace rehearse::predict {

namespace {

constexpr double kernels_of_block = 20;  // small kernels
constexpr Seconds small_kernel{5e-6};
// The host issues a block's operators one after the other, of which there are about 24 that are not in one kernel with
// others.
constexpr double operators_of_block = 24;
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

LanguageBlock::LanguageBlock(const LanguageModel& model, const LanguagePlan& plan, const DeviceClass& device,
                             const LanguageBoard& board)
    : m_(model),
      p_(plan),
      device_(device),
      board_(board),
      tiles_(with_shares(*device.tiles, board.products, board.memory)),
      tiles_8bit_(with_shares(*device.tiles, board.products_8bit, board.memory)),
      bare_tiles_(tiles_),
      bare_tiles_8bit_(tiles_8bit_) {
    bare_tiles_.depth.value = bare_tiles_8bit_.depth.value = 0;
    tokens_ = number(m_.sequence) / number(p_.context) * number(p_.microbatch);
    tensor_ = number(p_.tensor);
    element_ = size_of(p_.row_type()).value;
    memory_ = device.memory_bandwidth.value * tiles_.memory.value;
}

Passes LanguageBlock::product(double rows, double columns, double depth, double count, DataType type) const {
    const TileModel& tiles = type == DataType::fp8 ? tiles_8bit_ : tiles_;
    const auto one = [&](const ProductSizes& sizes) {
        return product_time(sizes, static_cast<std::int64_t>(std::max(1.0, count)), tiles, device_, type);
    };
    return {one({columns, rows, depth}),
            one({depth, rows, columns, Pass::backward_data}) + one({columns, depth, rows, Pass::backward_weights})};
}

void LanguageBlock::multiply(Work& work, double rows, double columns, double depth, double count, Side side) const {
    work.products += product(rows, columns, depth, count, p_.type);
    if (p_.type == DataType::fp8) {
        cast(work, rows * depth * count, rows * columns * count, depth * columns * count, side);
    }
}

// Operands of 8-bit products are cast: read for their largest value, read again and written, 2 + 2 + 1 bytes a value
// (weights once less: FSDP casts its share). Products over the other dimension want copies of what was cast the other
// way round. By rows, these are casts of their own, of whole inputs of each product; results of exact sums are scaled
// in a pass of their own (github pytorch/ao, issue 2184).
void LanguageBlock::cast(Work& work, double inputs, double results, double weights, Side side) const {
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
    const auto some = [&](double values, Side shared) {
        return 5 * values / (p_.sequence_parallel && side == shared ? tensor_ : 1);
    };
    work.casts += {moved(some(inputs, Side::gathered) + 3 * weights),
                   moved(some(results, Side::scattered) + other_way_round * 2 * (inputs + results))};
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
// 22 values of 16 bits; with RMS normalization in f32 (gated models) 36 bytes a value of each of two and three values
// of each of two sums (models/software.toml). torchtitan rotates queries and keys as complex f32, which is not
// compiled: 20 bytes a value; keys and values are copied for all heads. With Transformer Engine's normalizations and
// rotations two sums are left that read two rows and write one each.
double LanguageBlock::between_products(double own_rows, double rotated) const {
    if (!p_.is_pytorch()) return 8 * own_rows + rotated;
    if (p_.library_norms) return 10 * own_rows + rotated;
    const double heads = number(m_.heads) / tensor_, key_heads = number(m_.key_heads) / tensor_;
    const double d = tokens_ * number(m_.head_size);
    const double rotation = p_.software == LanguageSoftware::pytorch ? 10 * (heads + key_heads) * d : rotated;
    const double copied = m_.key_heads < m_.heads ? 2 * (heads + key_heads) * d : 0;
    const double one_by_one = m_.gated ? 42 : 22;
    return (p_.compiled ? 9 : one_by_one) * own_rows + rotation + copied;
}

Passes LanguageBlock::with_recomputation(const Work& work, Passes between) const {
    Passes sum = work.products;
    sum += work.attention;
    sum += work.casts;
    sum += work.experts;
    sum += work.rotation;
    sum += between;
    // The device computes while the host issues, unless the program waits for it: Sailor's runs of Megatron-DeepSpeed
    // take the same time longer a block whether micro-batches have one, four or eight samples.
    const Seconds issued = work.operators * board_.issue;
    if (p_.software == LanguageSoftware::megatron_deepspeed) {
        sum = {sum.forward + issued, sum.backward + 2 * issued};
    } else {
        sum = {std::max(sum.forward, issued), std::max(sum.backward, 2 * issued)};
    }
    sum.backward += work.again;
    if (p_.recompute == Recomputation::full) sum.backward += sum.forward;
    if (p_.recompute == Recomputation::selective) {
        sum.backward += p_.is_pytorch() ? 0.5 * (work.products.forward + work.casts.forward) + between.forward
                                        : work.attention.forward;
    }
    return sum;
}

Passes LanguageBlock::block(std::int64_t index) const {
    const double h = number(m_.hidden);
    Work work;
    work.kernels = kernels_of_block;
    work.operators = operators_of_block;
    const double rotated = add_attention(work, index);
    double values = between_products(tokens_ * h / tensor_, rotated);
    if (p_.graphs == HostGraphs::parts) work.operators = 1;
    if (m_.has_experts(index)) {
        values += add_experts(work);
    } else {
        const Seconds before = work.products.forward + work.casts.forward;
        values += feed_forward(work, tokens_, number(m_.experts > 0 ? m_.dense_ffn : m_.ffn) / tensor_, 1);
        if (p_.again.feed_forward) work.again += work.products.forward + work.casts.forward - before;
    }
    if (p_.again.norms) work.again += moved(4 * tokens_ * h / tensor_ * element_);
    if (p_.graphs == HostGraphs::step) work.operators = 0;
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
