// SPDX-License-Identifier: Apache-2.0
// Mixtures of experts of Mixtral (Jiang et al. 2024), Qwen and DeepSeek: gated blocks, of which a token goes to some.
// No token is turned away; an expert's share of them is the even one.
#include <algorithm>

#include "models/huggingface/llama.hpp"

namespace rehearse::models::huggingface {
namespace {

bool is_listed(const Config& config, std::int64_t index) {
    const std::vector<std::int64_t> dense = config.sizes("mlp_only_layers", {});
    return std::ranges::find(dense, index) != dense.end();
}

// What a config.json calls its experts, and what each type takes where it says nothing: the defaults of transformers'
// configuration classes; 0: none.
struct Mixture {
    std::string_view key;
    std::int64_t experts, top, inner;
    std::int64_t shared = 0;       // of all tokens; of Qwen2-MoE, the width of the one there is
    std::int64_t first_dense = 0;  // blocks without a mixture
};

Mixture mixture_of(const std::string& type) {
    if (type == "mixtral") return {"num_local_experts", 8, 2, 14336};
    if (type == "qwen2_moe") return {"num_experts", 60, 4, 1408, 5632};
    if (type == "deepseek_v2") return {"n_routed_experts", 64, 0, 1407, 2};
    if (type == "deepseek_v3") return {"n_routed_experts", 256, 8, 2048, 1, 3};
    return {"num_experts", 128, 8, 768};
}

}  // namespace

std::string mixture_name(const Config& config, const std::string& type, std::int64_t index) {
    if (type == "mixtral") return "block_sparse_moe";
    if (type == "qwen2_moe" || type == "qwen3_moe") {
        const std::int64_t step = std::max<std::int64_t>(1, config.size("decoder_sparse_step", 1));
        return !is_listed(config, index) && (index + 1) % step == 0 ? "mlp" : "";
    }
    if (!type.starts_with("deepseek")) return "";
    const std::int64_t step = std::max<std::int64_t>(1, config.size("moe_layer_freq", 1));
    return index >= config.size("first_k_dense_replace", mixture_of(type).first_dense) && index % step == 0 ? "mlp"
                                                                                                            : "";
}

int experts(Rows& rows, const Config& config, const std::string& type, const std::string& name, int from) {
    NetworkBuilder& b = rows.builder();
    const std::int64_t tokens = rows.rows(from), hidden = rows.width(from);
    const Mixture usual = mixture_of(type);
    const std::int64_t count = config.size(usual.key, usual.experts, 1);
    const std::int64_t top =
        usual.top == 0 ? config.size("num_experts_per_tok") : config.size("num_experts_per_tok", usual.top, 1);
    if (top > count) config.fail("num_experts_per_tok", "is more than there are experts");
    const std::int64_t inner =
        config.size(type == "mixtral" ? "intermediate_size" : "moe_intermediate_size", usual.inner, 1);
    for (const auto* chosen : {"n_group", "topk_group", "topk_method", "norm_topk_prob"}) (void)config.has(chosen);

    int scores = rows.dense(name + ".gate", from, count, false);
    if (type == "deepseek_v3") {  // sigmoids, and a correction that only chooses (DeepSeek-V3 2024, section 2.1.2)
        const Shape shape = b.shape(scores);
        scores = b.layer(name + ".gate.sigmoid", Activation{Nonlinearity::sigmoid, shape}, {scores});
        const Elementwise corrected{"add", shape, {shape}, {{count}}};
        scores = b.layer(name + ".gate.e_score_correction_bias", corrected, {scores});
    }
    const std::int64_t capacity = (top * tokens + count - 1) / count;
    const Routing routing{tokens, hidden, count, top, capacity, 1};
    const int slots = b.layer(name + ".dispatch", DispatchTokens{routing}, {from, scores});
    const auto grouped = [&](const char* which, int input, std::int64_t features) {
        const GroupedMatMul op{count, capacity, features, b.shape(input).back(), 1, 1, false};
        return b.layer(name + ".experts." + which, op, {input});
    };
    const bool mixtral = type == "mixtral";
    const int gate = rows.function(name + ".experts.act_fn", grouped(mixtral ? "w1" : "gate_proj", slots, inner),
                                   "hidden_act", "silu");
    const int wide = rows.multiply(name + ".experts.gated", gate, grouped(mixtral ? "w3" : "up_proj", slots, inner));
    const int made = grouped(mixtral ? "w2" : "down_proj", wide, hidden);
    int out = b.layer(name + ".combine", CombineTokens{routing}, {made, scores});

    const std::int64_t common = type == "qwen2_moe" ? config.size("shared_expert_intermediate_size", usual.shared)
                                                    : config.size_unless_null("n_shared_experts", usual.shared) * inner;
    if (common == 0) return out;
    const std::string shared = name + (type == "qwen2_moe" ? ".shared_expert" : ".shared_experts");
    int all = rows.gated(shared, from, common, false);
    if (type == "qwen2_moe") {
        const int weight = rows.dense(name + ".shared_expert_gate", from, 1, false);
        const int share =
            b.layer(name + ".shared_expert_gate.sigmoid", Activation{Nonlinearity::sigmoid, b.shape(weight)}, {weight});
        all = b.layer(shared + ".weighed", Elementwise{"mul", b.shape(all), {b.shape(all), b.shape(share)}},
                      {all, share});
    }
    return b.add(shared + ".add", out, all);
}

}  // namespace rehearse::models::huggingface
