// SPDX-License-Identifier: Apache-2.0
#include "predict/language_plan.hpp"

#include <algorithm>

namespace rehearse::predict {

namespace {

double number(std::int64_t value) { return static_cast<double>(value); }

}  // namespace

StageBlocks blocks_of(const LanguageModel& model, const LanguagePlan& plan, StageIndex stage) {
    if (model.extra_tokens > 0) {
        const std::int64_t parts = plan.pipe * plan.chunks, full = (model.layers + parts - 1) / parts;
        const auto in_stage = [&](std::int64_t of) {
            std::int64_t count = 0;
            for (std::int64_t part = of; part < parts; part += plan.pipe)
                count += std::clamp<std::int64_t>(model.layers - part * full, 0, full);
            return count;
        };
        StageBlocks blocks{0, in_stage(stage)};
        for (std::int64_t before = 0; before < stage; ++before) blocks.first += in_stage(before);
        return blocks;
    }
    const std::int64_t each = model.layers / plan.pipe, more = model.layers % plan.pipe;
    return {stage * each + std::min<std::int64_t>(stage, more), each + (stage < more ? 1 : 0)};
}

BlockWeights weights_of(const LanguageModel& m, const LanguagePlan& plan, std::int64_t block) {
    const double h = number(m.hidden), heads = number(m.heads), d = number(m.head_size), t = number(plan.tensor);
    const double matrices = m.gated ? 3 : 2;
    BlockWeights weights{2 * h, 0};  // the gains of both normalizations
    if (m.has_latent()) {
        const double q = number(m.latent.query_rank), kv = number(m.latent.key_rank), rope = number(m.latent.rope);
        const double value = number(m.latent.value_size);
        weights.dense += h * q + q + q * heads * (d + rope) / t + h * (kv + rope) + kv + kv * heads * (d + value) / t +
                         heads * value * h / t;
    } else {
        weights.dense += h * d * (2 * heads + 2 * number(m.key_heads)) / t;
    }
    if (m.has_experts(block)) {
        weights.dense += h * number(m.experts) + matrices * h * number(m.expert_ffn * m.shared_experts) / t;
        weights.experts = matrices * h * number(m.expert_ffn * m.experts) / number(plan.experts);
    } else {
        weights.dense += matrices * h * number(m.experts > 0 ? m.dense_ffn : m.ffn) / t;
    }
    return weights;
}

BlockWeights stage_weights(const LanguageModel& model, const LanguagePlan& plan, StageIndex stage) {
    BlockWeights sum;
    const StageBlocks blocks = blocks_of(model, plan, stage);
    for (std::int64_t block = blocks.first; block < blocks.first + blocks.count; ++block) {
        const BlockWeights some = weights_of(model, plan, block);
        sum.dense += some.dense;
        sum.experts += some.experts;
    }
    const double table = number(model.vocabulary) * number(model.hidden) / number(plan.tensor);
    if (stage == 0) sum.dense += table;
    if (stage + 1 == plan.pipe) {
        const bool has_table = model.tied && stage == 0;
        sum.dense += (has_table ? 0 : table) + number(model.hidden);
        // Rows of the last block and of the next token are joined: 2 h of them become h.
        for (std::int64_t token = 0; token < model.extra_tokens; ++token) {
            const BlockWeights some = weights_of(model, plan, model.layers - 1);
            sum.dense += some.dense + 2 * number(model.hidden * model.hidden);
            sum.experts += some.experts;
        }
    }
    return sum;
}

}  // namespace rehearse::predict
