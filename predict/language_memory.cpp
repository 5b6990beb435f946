// SPDX-License-Identifier: Apache-2.0
#include "predict/language_memory.hpp"

#include <algorithm>
#include <set>

namespace rehearse::predict {

namespace {

double number(std::int64_t value) { return static_cast<double>(value); }

// What the blocks and the loss of one stage keep, in values of the compute type and in bytes beside them.
class Stage {
public:
    Stage(const LanguageModel& model, const LanguagePlan& plan) : m_(model), p_(plan) {
        tokens_ = number(m_.sequence) / number(p_.context) * number(p_.microbatch);
        tensor_ = number(p_.tensor);
        // Rows between tensor-parallel regions lie in shares with sequence parallelism, else whole on every rank.
        rows_ = tokens_ * number(m_.hidden) / (p_.sequence_parallel ? tensor_ : 1);
        element_ = size_of(p_.type == DataType::fp8 ? DataType::bf16 : p_.type).value;
    }

    /// Kept of a block from its forward to its backward pass.
    double block_bytes(std::int64_t block) const {
        return p_.recompute == Recomputation::full ? element_ * rows_ : ordinary_bytes(block);
    }

    /// Beside what is kept: the largest of these blocks, while it is computed again for its backward pass.
    double again_bytes(const StageBlocks& blocks) const {
        double most = 0;
        for (std::int64_t block = blocks.first; block < blocks.first + blocks.count; ++block)
            most = std::max(most, ordinary_bytes(block) - block_bytes(block));
        return most;
    }

    // Scores and, in f32, what the fused cross-entropy makes of them; or, a moment later, their gradient while the
    // gradient of the table is made, which is then added to its f32 sum.
    double loss_bytes() const {
        const double scores = tokens_ * number(m_.vocabulary) / tensor_;
        const double table = number(m_.vocabulary) * number(m_.hidden) / tensor_;
        return std::max((element_ + 4) * scores, element_ * (scores + table));
    }

    // Transformer Engine adds gradients to their f32 sums inside the product and hands autograd an empty one, which it
    // keeps for each shape of weights.
    double stand_in_bytes(const StageBlocks& blocks) const {
        std::set<double> shapes;
        double sum = 0;
        const auto add = [&](double rows, double columns) {
            if (shapes.insert(rows * 1e7 + columns).second) sum += rows * columns;
        };
        for (std::int64_t block = blocks.first; block < blocks.first + blocks.count; ++block) add_shapes(block, add);
        return element_ * sum;
    }

    double message_bytes() const {
        const double whole = element_ * tokens_ * number(m_.hidden);
        if (p_.tensor > 1) return 3 * whole;  // gathered rows, their gradient, and what is being gathered
        return p_.pipe > 1 || p_.experts > 1 || p_.context > 1 ? whole : 0;
    }

private:
    /// What a block without recomputation keeps.
    double ordinary_bytes(std::int64_t block) const {
        double values = (p_.again.norms ? 2 : 4) * rows_;         // what both normalizations read and give
        double bytes = 4 * tokens_ * number(m_.heads) / tensor_;  // attention's logarithm of a sum a row, f32
        // Those of a block's results give what is added, and those of queries and keys what is rotated: neither is read
        // again.
        values += number(m_.more_norms) * rows_ + tokens_ * number(m_.normed_heads) / tensor_;
        values += m_.has_latent() ? latent_values() : attention_values();
        if (p_.attention == AttentionKernel::kept) values += tokens_ * number(m_.sequence) * number(m_.heads) / tensor_;
        if (m_.has_experts(block)) {
            // Ranks of a tensor group send their own rows to experts.
            const double taken = tokens_ / tensor_ * number(m_.top);
            values += ffn_values(number(m_.expert_ffn * m_.shared_experts) / tensor_, tokens_);
            values += ffn_values(number(m_.expert_ffn), taken) + 2 * taken * number(m_.hidden);
            if (p_.again.activations) values -= taken * number(m_.expert_ffn);
            bytes += 8 * tokens_ / tensor_ * number(m_.experts);  // the router's scores and probabilities, f32
        } else if (!p_.again.feed_forward) {
            values += ffn_values(number(m_.experts > 0 ? m_.dense_ffn : m_.ffn) / tensor_, tokens_);
        }
        return element_ * values + bytes;
    }

    double ffn_values(double width, double tokens) const { return (m_.gated ? 3 : 2) * tokens * width; }

    // Queries, keys and values, and attention's result.
    double attention_values() const {
        return tokens_ * number(m_.head_size) * (2 * number(m_.heads) + 2 * number(m_.key_heads)) / tensor_;
    }

    // Both ranks before and after their normalization, queries and keys of all heads, values and the result twice,
    // since they are joined and padded for the kernel.
    double latent_values() const {
        const double heads = number(m_.heads) / tensor_, q = number(m_.latent.query_rank);
        const double kv = number(m_.latent.key_rank), rope = number(m_.latent.rope);
        const double value = number(m_.latent.value_size), head = number(m_.head_size) + rope + value;
        return tokens_ * (2 * q + (kv + rope) + kv + heads * (p_.again.up_projections ? value : 2 * head));
    }

    template <typename Add>
    void add_shapes(std::int64_t block, const Add& add) const {
        const double h = number(m_.hidden), heads = number(m_.heads) / tensor_, d = number(m_.head_size);
        const double first = m_.gated ? 2 : 1;
        if (m_.has_latent()) {
            const double q = number(m_.latent.query_rank), kv = number(m_.latent.key_rank);
            const double rope = number(m_.latent.rope), value = number(m_.latent.value_size);
            add(q, h);
            add(heads * (d + rope), q);
            add(kv + rope, h);
            add(heads * (d + value), kv);
            add(h, heads * value);
        } else {
            add((heads + 2 * number(m_.key_heads) / tensor_) * d, h);
            add(h, heads * d);
        }
        if (m_.has_experts(block)) {
            for (const double width : {number(m_.expert_ffn * m_.shared_experts) / tensor_, number(m_.expert_ffn)}) {
                add(first * width, h);
                add(h, width);
            }
        } else {
            const double width = number(m_.experts > 0 ? m_.dense_ffn : m_.ffn) / tensor_;
            add(first * width, h);
            add(h, width);
        }
    }

    const LanguageModel& m_;
    const LanguagePlan& p_;
    double tokens_ = 0, tensor_ = 1, rows_ = 0, element_ = 2;
};

}  // namespace

LanguageMemory language_memory(const LanguageModel& model, const LanguagePlan& plan, StageIndex stage) {
    const Stage use{model, plan};
    const BlockWeights weights = stage_weights(model, plan, stage);
    const double ranks = plan.ranks_of_weights();
    const double replicas = plan.replicas_of_expert();
    const bool mixed = plan.type != DataType::f32 && plan.type != DataType::tf32;
    const double element = mixed ? 2 : 4, states = mixed ? 12 : 8;
    const double shares = plan.zero >= 1 ? ranks : 1, expert_shares = plan.zero >= 1 ? replicas : 1;
    LanguageMemory memory;
    memory.stage = stage;
    // ZeRO 3 that keeps what it gathered has weights and gradients whole, these in the type of rows.
    const bool gathered = plan.zero == 3 && !plan.weights_kept;
    // ZeRO 2 sums gradients once a step: whole until then where they are of several micro-batches, or nothing is sent
    // before the backward pass ends.
    const bool summed = gathered || (plan.zero == 2 && plan.microbatches == 1 && plan.overlap);
    memory.weights =
        Bytes{element * (weights.dense / (gathered ? ranks : 1) + weights.experts / (gathered ? replicas : 1))};
    memory.gradients = Bytes{(plan.zero == 3 && plan.weights_kept ? element : 4) *
                             (weights.dense / (summed ? ranks : 1) + weights.experts / (summed ? replicas : 1))};
    memory.optimizer = Bytes{states * (weights.dense / shares + weights.experts / expert_shares)};
    const StageBlocks blocks = blocks_of(model, plan, stage);
    double kept = 0;
    for (std::int64_t block = blocks.first; block < blocks.first + blocks.count; ++block)
        kept += use.block_bytes(block);
    const double losses = 1 + static_cast<double>(model.extra_tokens);
    if (stage + 1 == plan.pipe) kept += (losses - 1) * use.block_bytes(model.layers - 1);
    const std::int64_t begun = std::min(plan.pipe - stage, plan.microbatches);
    memory.activations = Bytes{kept * static_cast<double>(begun)};
    memory.again = Bytes{use.again_bytes(blocks)};
    if (stage + 1 == plan.pipe) memory.loss = Bytes{losses * use.loss_bytes()};
    // Scores are gone before the first block is computed again: the fuller of both moments counts.
    (memory.again > memory.loss ? memory.loss : memory.again) = Bytes{};
    memory.stand_ins = Bytes{use.stand_in_bytes(blocks)};
    memory.messages = Bytes{use.message_bytes()};
    return memory;
}

Bytes total(const LanguageMemory& m) {
    return m.weights + m.gradients + m.optimizer + m.activations + m.again + m.loss + m.stand_ins + m.messages;
}

std::vector<schedule::MemoryRow> rows(const LanguageMemory& m) {
    return {{"weights", m.weights},         {"gradients", m.gradients},  {"optimizer", m.optimizer},
            {"activations", m.activations}, {"computed again", m.again}, {"loss", m.loss},
            {"stand-ins", m.stand_ins},     {"messages", m.messages},    {"total", total(m)}};
}

LanguageMemory language_memory(const LanguageModel& model, const LanguagePlan& plan) {
    LanguageMemory most = language_memory(model, plan, StageIndex{0});
    for (StageIndex stage{1}; stage < plan.pipe; ++stage) {
        const LanguageMemory some = language_memory(model, plan, stage);
        if (total(some) > total(most)) most = some;
    }
    return most;
}

}  // namespace rehearse::predict
