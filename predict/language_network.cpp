// SPDX-License-Identifier: Apache-2.0
#include "predict/language_network.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/op.hpp"

namespace rehearse::predict {

namespace {

/// What language_model_of looks at of a network, in its order.
struct Parts {
    std::vector<const Embedding*> tables;
    std::vector<const Attention*> attention;
    std::vector<const MatMul*> products;
    std::vector<std::pair<std::int64_t, std::int64_t>> norms;  // of each: sets, and numbers of a set
    bool others = false;                                       // experts
};

Parts parts_of(const Network& network) {
    Parts parts;
    for (const Layer& layer : network.layers) {
        if (const auto* table = std::get_if<Embedding>(&layer.op)) parts.tables.push_back(table);
        if (const auto* attention = std::get_if<Attention>(&layer.op)) parts.attention.push_back(attention);
        if (const auto* product = std::get_if<MatMul>(&layer.op)) parts.products.push_back(product);
        if (const auto* norm = std::get_if<LayerNorm>(&layer.op)) parts.norms.emplace_back(norm->rows, norm->features);
        if (const auto* norm = std::get_if<Normalization>(&layer.op))
            parts.norms.emplace_back(norm->sets, elements(norm->shape) / norm->sets);
        if (std::holds_alternative<GroupedMatMul>(layer.op)) parts.others = true;
    }
    return parts;
}

bool alike(const std::vector<const Attention*>& all) {
    return std::ranges::all_of(all, [&](const Attention* each) { return *each == *all.front(); });
}

/// Tells what a block normalizes beside the rows before attention and before its feed-forward layer: rows that these
/// two give (Gemma 2), and queries and keys (Qwen3). False where the last normalization is not the only one outside of
/// blocks, or a block has fewer than two.
bool add_norms(const Parts& parts, LanguageModel& model) {
    std::int64_t of_rows = 0, of_heads = 0;
    for (const auto& [sets, numbers] : parts.norms) {
        if (sets == model.sequence && numbers == model.hidden)
            ++of_rows;
        else
            of_heads += sets * numbers;
    }
    if (of_rows <= 2 * model.layers || (of_rows - 1) % model.layers != 0) return false;
    model.more_norms = (of_rows - 1) / model.layers - 2;
    model.normed_heads = of_heads / (model.layers * model.sequence);
    return true;
}

// Of the closed form on one rank.
double weights_of_all(const LanguageModel& model) {
    const BlockWeights weights = stage_weights(model, {}, StageIndex{0});
    return weights.dense + weights.experts;
}

}  // namespace

std::optional<LanguageModel> language_model_of(const Network& network) {
    const Parts parts = parts_of(network);
    if (parts.others || parts.tables.size() != 1 || parts.attention.empty() || !alike(parts.attention))
        return std::nullopt;
    const Embedding& table = *parts.tables.front();
    const Attention& attention = *parts.attention.front();
    const std::size_t blocks = parts.attention.size();
    const bool causal = attention.causal && attention.queries == attention.keys;
    if (!causal || value_size(attention) != attention.head_size) return std::nullopt;
    // The last product makes the scores; those of a block end with the feed-forward layer's second.
    if (parts.products.size() < blocks + 1 || (parts.products.size() - 1) % blocks != 0) return std::nullopt;
    const std::size_t each = (parts.products.size() - 1) / blocks;
    const MatMul& last = *parts.products[each - 1];
    if (last.n != table.width || parts.products.back()->n != table.vocabulary) return std::nullopt;
    LanguageModel model;
    model.layers = static_cast<std::int64_t>(blocks);
    model.hidden = table.width;
    model.heads = attention.heads;
    model.key_heads = key_heads(attention);
    model.head_size = attention.head_size;
    model.ffn = last.k;
    model.vocabulary = table.vocabulary;
    model.sequence = attention.queries;
    const auto first = parts.products.begin(), end = first + static_cast<std::ptrdiff_t>(each);
    const auto widened = std::count_if(first, end, [&](const MatMul* product) { return product->n == model.ffn; });
    model.gated = widened == 2 || std::any_of(first, end, [&](const MatMul* product) {
                      return product->n == 2 * model.ffn && product->k == model.hidden;
                  });
    model.tied = parts.products.back()->tied;
    if (!add_norms(parts, model)) return std::nullopt;
    const double has = static_cast<double>(parameters(network));
    if (std::abs(weights_of_all(model) / has - 1) > 0.005) return std::nullopt;
    return model;
}

namespace {

/// Whether a plan lays the network on ranks as Megatron-Core does: not with stages behind layers of one's own, nor with
/// layers cut or shared otherwise.
bool lays_as_megatron(const schedule::Plan& plan) {
    return plan.stage_copies.empty() && plan.cuts.empty() && plan.tensor_split == schedule::TensorSplit::turns &&
           !plan.share_dense && !plan.share_tables;
}

/// Whether each rank along tensor gets its part of every block, as the closed form counts: else the schedule leaves
/// layers whole on all of them.
bool is_cut_in_parts(const LanguageModel& model, std::int64_t tensor) {
    return model.heads % tensor == 0 && model.key_heads % tensor == 0 && model.ffn % tensor == 0;
}

}  // namespace

std::optional<LanguagePlan> language_plan_of(const schedule::Plan& plan, const Schedule& schedule) {
    LanguagePlan result;
    if (!lays_as_megatron(plan) || schedule::keeps_for_methods(schedule)) return std::nullopt;
    for (const Axis& axis : schedule.mesh.axes) {
        if (axis.name == "data") {
            result.data = axis.size;
        } else if (axis.name == "tensor") {
            result.tensor = axis.size;
        } else if (axis.name == "pipe") {
            result.pipe = axis.size;
        } else {
            return std::nullopt;
        }
    }
    const bool mixed = schedule.precision == Precision::bf16;
    if ((!mixed && schedule.precision != Precision::fp32) || schedule.optimizer != Optimizer::adam) return std::nullopt;
    if (result.pipe > 1 && (plan.pipeline != "1f1b" || plan.chunks > 1)) return std::nullopt;
    if (plan.recompute == schedule::Recompute::attention || plan.recompute == schedule::Recompute::all)
        return std::nullopt;
    result.type = mixed ? DataType::bf16 : DataType::f32;
    result.zero = plan.zero;
    result.overlap = plan.overlap;
    result.sequence_parallel = plan.sequence;
    result.recompute = plan.recompute == schedule::Recompute::blocks ? Recomputation::full : Recomputation::none;
    if (plan.keep_attention.value_or(false)) result.attention = AttentionKernel::kept;
    result.microbatch = micro_batch_size(schedule);
    result.microbatches = schedule.micro_batches;
    return result;
}

std::vector<LanguageMemory> language_memory_of_stages(const schedule::Plan& plan, const Schedule& schedule) {
    const auto words = language_plan_of(plan, schedule);
    if (!words) return {};
    const auto model = language_model_of(schedule.network);
    if (!model || !is_cut_in_parts(*model, words->tensor)) return {};
    std::vector<LanguageMemory> stages;
    for (StageIndex stage{0}; stage < words->pipe; ++stage) stages.push_back(language_memory(*model, *words, stage));
    return stages;
}

Bytes language_memory_peak(const schedule::Plan& plan, const Schedule& schedule) {
    const std::vector<LanguageMemory> stages = language_memory_of_stages(plan, schedule);
    Bytes most = stages.empty() ? schedule.memory_peak : Bytes{};
    for (const LanguageMemory& stage : stages) most = std::max(most, total(stage));
    return most;
}

}  // namespace rehearse::predict
