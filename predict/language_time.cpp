// SPDX-License-Identifier: Apache-2.0
#include "predict/language_time.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/error.hpp"

namespace rehearse::predict {

namespace {

// Shares of the peak that fused attention reaches (FlashAttention-2's table for long sequences, Dao 2023: 0.55 to 0.73
// forward on an A100, backward three quarters of it).
constexpr double attention_forward = 0.7, attention_backward = 0.55;
constexpr double backward_of_attention = 2.5;           // products of its backward pass over those of forward
constexpr double kernels_of_block = 20, rows_read = 8;  // small kernels; times that a block's rows cross memory
constexpr Seconds small_kernel{5e-6};
// The host issues a block's operators one after the other: PyTorch's 38 us each (models/software.toml, vTrain's rows of
// Megatron-DeepSpeed), of which a block has about 24 that are not in one kernel with others.
constexpr Seconds issued = 24 * Seconds{38e-6};
// Times that scores cross memory where they are kept (models/software.toml, megatron-deepspeed-2023), backward half as
// often again.
constexpr double score_passes = 9.5;
constexpr double of_all_to_all = 0.75;  // of a ring's rate: many small messages
constexpr double bytes_of_update = 30;  // a weight: gradient, master weight and moments, read and written in f32

double number(std::int64_t value) { return static_cast<double>(value); }

struct Passes {
    Seconds forward, backward;
    Passes& operator+=(const Passes& other) {
        forward += other.forward;
        backward += other.backward;
        return *this;
    }
};

class Block {
public:
    Block(const LanguageModel& model, const LanguagePlan& plan, const DeviceClass& device, const LanguageNode& node)
        : m_(model), p_(plan), device_(device), node_(node) {
        tokens_ = number(m_.sequence) / number(p_.context) * number(p_.microbatch);
        tensor_ = number(p_.tensor);
        element_ = size_of(p_.type == DataType::fp8 ? DataType::bf16 : p_.type);
    }

    Passes block(std::int64_t index) const {
        const double h = number(m_.hidden), heads = number(m_.heads) / tensor_, d = number(m_.head_size);
        double values = rows_read * tokens_ * h / tensor_, kernels = kernels_of_block;
        Passes sum;
        if (m_.has_latent()) {
            const double q = number(m_.latent.query_rank), kv = number(m_.latent.key_rank);
            const double key = d + number(m_.latent.rope), value = number(m_.latent.value_size);
            sum += product(tokens_, q + kv + number(m_.latent.rope), h);
            sum += product(tokens_, heads * key, q);
            sum += product(tokens_, heads * (d + value), kv);
            sum += product(tokens_, h, heads * value);
            sum += attention(key, value, heads);
            values += tokens_ * heads * (4 * key + 2 * value);
            kernels *= 2;
        } else {
            const double all = (heads + 2 * number(m_.key_heads) / tensor_) * d;
            sum += product(tokens_, all, h);
            sum += product(tokens_, h, heads * d);
            sum += attention(d, d, heads);
            values += 2 * tokens_ * all;
        }
        if (m_.has_experts(index)) {
            const double taken = tokens_ * number(m_.top), mine = number(m_.experts) / number(p_.experts);
            const double rows = taken * number(p_.experts) / number(m_.experts);  // of one expert
            values += layers(tokens_, number(m_.expert_ffn * m_.shared_experts), 1, sum);
            values += layers(rows, number(m_.expert_ffn), mine, sum) + 4 * taken * h;
            sum += product(tokens_, number(m_.experts), h);
            if (!m_.has_latent()) kernels *= 2;
        } else {
            values += layers(tokens_, number(m_.experts > 0 ? m_.dense_ffn : m_.ffn) / tensor_, 1, sum);
        }
        const Seconds small = kernels * small_kernel;
        const Seconds moved = read(values);
        sum += {moved + small, 2 * (moved + small)};
        return again({std::max(sum.forward, issued), std::max(sum.backward, 2 * issued)});
    }

    // Scores and their loss; embedding's part is little.
    Passes scores() const {
        const double words = number(m_.vocabulary) / tensor_;
        Passes sum = product(tokens_, words, number(m_.hidden));
        sum.forward += read(6 * tokens_ * words);
        return sum;
    }

    // Sums and gathers of a block's rows in tensor groups, twice a pass each; with sequence parallelism what was
    // gathered is not kept, so that backward gathers twice more. Experts' rows go and come back in each pass.
    Seconds messages(std::int64_t index) const {
        const Bytes rows = tokens_ * number(m_.hidden) * element_;
        const double t = tensor_, e = number(p_.experts), c = number(p_.context);
        Seconds sum{};
        if (p_.tensor > 1) sum += (p_.sequence_parallel ? 10 : 8) * (t - 1) / t * rows / ring(p_.tensor);
        if (p_.experts > 1 && m_.has_experts(index)) {
            const bool across = p_.experts > node_.half;
            const Bandwidth rate = of_all_to_all * (across ? node_.all_to_all_across : 1) * within(p_.experts);
            sum += 4 * number(m_.top) * (e - 1) / e * rows / rate;
        }
        // Keys and values of a ring are sent while others are worked on: what is left is the first part.
        if (p_.context > 1) sum += 2 * number(m_.key_heads) / number(m_.heads) / t * rows / c / ring(p_.context);
        return sum;
    }

    Seconds between_stages() const {
        return p_.pipe == 1 ? Seconds{0}
                            : 2 * tokens_ * number(m_.hidden) / tensor_ * element_ / within(p_.tensor * p_.pipe);
    }

    // Groups of data parallelism stand furthest apart: rings of all tensor groups pass the same links.
    Seconds gathered_and_summed(double weights, double ranks, double bytes) const {
        if (ranks <= 1) return Seconds{0};
        const bool inside = p_.tensor * p_.pipe * p_.data * p_.context <= node_.devices;
        const Bandwidth rate = inside ? node_.inside * (1 / (node_.shared ? tensor_ : 1)) : node_.outside;
        return Bytes{bytes * weights * (ranks - 1) / ranks} / rate;
    }

    Seconds read(double values) const {
        return values * element_ / (device_.memory_bandwidth.value * device_.tiles->memory.value);
    }

private:
    Passes product(double rows, double columns, double depth, double count = 1) const {
        const auto one = [&](double m, double n, double k) {
            return product_time({m, n, k}, static_cast<std::int64_t>(std::max(1.0, count)), *device_.tiles, device_,
                                p_.type);
        };
        return {one(columns, rows, depth), one(depth, rows, columns) + one(columns, depth, rows)};
    }

    // The values that cross memory between a feed-forward layer's products.
    double layers(double rows, double width, double count, Passes& sum) const {
        if (width <= 0 || rows <= 0) return 0;
        const double first = m_.gated ? 2 : 1;
        sum += product(rows, first * width, number(m_.hidden), count);
        sum += product(rows, number(m_.hidden), width, count);
        return (first + 1) * rows * width * count;
    }

    // Causal: half of the scores. Attention knows 16-bit and 32-bit products, whatever dense layers have.
    Passes attention(double key, double value, double heads) const {
        const Flops work{tokens_ * number(m_.sequence) * (key + value) * heads};
        const DataType type = p_.type == DataType::fp8 ? DataType::bf16 : p_.type;
        const FlopRate peak = device_.peak.at(type).value;
        Passes sum{work / (peak * attention_forward), backward_of_attention * work / (peak * attention_backward)};
        if (p_.attention_kept) {
            const Seconds scores = read(score_passes * tokens_ * number(m_.sequence) * heads);
            sum += {scores, 1.5 * scores};
        }
        return sum;
    }

    Passes again(Passes sum) const {
        const double part = p_.recompute == Recomputation::full        ? 1
                            : p_.recompute == Recomputation::selective ? 0.5
                                                                       : 0;
        sum.backward += part * sum.forward;
        return sum;
    }

    Bandwidth within(std::int64_t devices) const { return devices <= node_.devices ? node_.inside : node_.outside; }
    Bandwidth ring(std::int64_t devices) const { return (devices > node_.half ? node_.across : 1) * within(devices); }

    const LanguageModel& m_;
    const LanguagePlan& p_;
    const DeviceClass& device_;
    const LanguageNode& node_;
    double tokens_ = 0, tensor_ = 1;
    Bytes element_;
};

struct StageTime {
    Seconds compute, messages;
    Seconds both() const { return compute + messages; }
};

StageTime stage_time(const LanguageModel& model, const LanguagePlan& plan, const Block& block, std::int64_t stage) {
    StageTime time;
    const StageBlocks blocks = blocks_of(model, plan, stage);
    for (std::int64_t i = blocks.first; i < blocks.first + blocks.count; ++i) {
        const Passes passes = block.block(i);
        time.compute += passes.forward + passes.backward;
        time.messages += block.messages(i);
    }
    if (stage + 1 == plan.pipe) {
        const Passes passes = block.scores();
        time.compute += passes.forward + passes.backward;
    }
    time.messages += block.between_stages();
    return time;
}

}  // namespace

Seconds total(const LanguageTime& time) {
    return time.compute + time.messages + time.bubble + time.gradients + time.update;
}

LanguageTime language_time(const LanguageModel& model, const LanguagePlan& plan, const DeviceClass& device,
                           const LanguageNode& node) {
    if (device.tiles == nullptr || !device.peak.contains(plan.type))
        throw InputError(fmt::format("device '{}' has no [device.tiles] or no peak of {}: a closed form needs both",
                                     device.name, to_string(plan.type)));
    const Block block{model, plan, device, node};
    const double microbatches = number(plan.microbatches);
    StageTime slowest;
    Seconds all{};
    double dense = 0, experts = 0;
    for (std::int64_t stage = 0; stage < plan.pipe; ++stage) {
        const StageTime time = stage_time(model, plan, block, stage);
        all += time.both();
        if (time.both() > slowest.both()) slowest = time;
        const BlockWeights weights = stage_weights(model, plan, stage);
        dense = std::max(dense, weights.dense);
        experts = std::max(experts, weights.experts);
    }
    LanguageTime result;
    result.compute = microbatches * slowest.compute;
    result.messages = microbatches * slowest.messages;
    result.bubble = (all - slowest.both()) * (1 / number(plan.chunks));
    const double ranks = plan.ranks_of_weights(), replicas = std::max(1.0, ranks / number(plan.experts));
    // Gradients are summed in f32, weights gathered in the compute type; ZeRO 3 gathers twice a micro-batch.
    const double element = size_of(plan.type == DataType::fp8 ? DataType::bf16 : plan.type).value;
    const double bytes = plan.zero == 3 ? microbatches * 3 * element : plan.zero == 0 ? 8 : 4 + element;
    const Seconds sums =
        block.gathered_and_summed(dense, ranks, bytes) + block.gathered_and_summed(experts, replicas, bytes);
    result.gradients = plan.overlap ? std::max(Seconds{0}, sums - result.compute) : sums;
    const double shares = plan.zero >= 1 ? ranks : 1, expert_shares = plan.zero >= 1 ? replicas : 1;
    const double touched = bytes_of_update * (dense / shares + experts / expert_shares) + 4 * (dense + experts);
    result.update = block.read(touched / element);
    return result;
}

}  // namespace rehearse::predict
