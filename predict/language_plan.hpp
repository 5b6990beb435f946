// SPDX-License-Identifier: Apache-2.0
// A transformer of today by its sizes, and a plan that trains it: what language_memory and language_time are asked.
#pragma once

#include <algorithm>
#include <cstdint>

#include "core/index.hpp"
#include "core/op.hpp"

namespace rehearse::predict {

/// Multi-head latent attention (DeepSeek-V2 2024, section 2.1): ranks of queries and of keys and values, and the sizes
/// of a head's parts. All 0: none.
struct LatentAttention {
    std::int64_t query_rank = 0, key_rank = 0, rope = 0, value_size = 0;
};

/// Decoder of `layers` blocks. `experts` 0: none; else the first `dense_layers` blocks have `dense_ffn`, the others a
/// router, `shared_experts` and `experts` of `expert_ffn`, each token going to `top`. `gated`: two matrices before the
/// product (SwiGLU), one where not. `window` > 0: attention of every other block sees so many keys and itself.
/// `biases`: experts' products have some, `clamped`: their gate and its pair are cut off, `scaled_rotation`: the
/// rotation's cosines are scaled as for longer sequences (Peng et al. 2023, YaRN, section 3.4; all three GPT-OSS).
/// `extra_tokens`: blocks after the last, each with scores and a loss of its own, that predict one token more
/// (DeepSeek-V3 2024, section 2.2). `tied`: words and their scores share one table. `more_norms`: normalizations of a
/// block beside the two before attention and before its feed-forward layer; `normed_heads`: numbers a token of the
/// queries and keys that are normalized.
struct LanguageModel {
    std::int64_t layers = 1, hidden = 1, heads = 1, key_heads = 1, head_size = 1, ffn = 1, vocabulary = 1, sequence = 1;
    std::int64_t experts = 0, top = 0, expert_ffn = 0, shared_experts = 0, dense_ffn = 0, dense_layers = 0;
    LatentAttention latent;
    bool gated = true, biases = false, clamped = false, scaled_rotation = false;
    std::int64_t window = 0, extra_tokens = 0;
    bool tied = false;
    std::int64_t more_norms = 0, normed_heads = 0;

    bool has_experts(std::int64_t layer) const { return experts > 0 && layer >= dense_layers; }
    bool has_latent() const { return latent.key_rank > 0; }
};

/// selective: what the software calls so. Megatron computes attention again (Korthikanti et al. 2022, section 5),
/// torchtitan every other product and all that lies between products (its policy of single operators).
enum class Recomputation { none, selective, full };

/// Who issues the step. megatron: Megatron-Core with Transformer Engine, neighbouring operators fused, attention by
/// cuDNN. megatron_deepspeed: as of 2023, few operators fused. pytorch: torchtitan's model code and FSDP2. composer:
/// llm-foundry's and FSDP1.
enum class LanguageSoftware { megatron, megatron_deepspeed, pytorch, composer };

/// fused: what the software uses on the device (cuDNN or FlashAttention-2). kept: probabilities lie in memory from
/// forward to backward. triton: FlashAttention's first algorithm in Triton.
enum class AttentionKernel { fused, kept, triton };

/// How operands of 8-bit products are scaled: by a history of largest values, by the tensor's own, by each row's.
enum class Float8Scaling { delayed, tensorwise, rowwise };

/// What of a block is computed again in the backward pass where `recompute` is none: Megatron-Core's recompute_modules.
struct RecomputedParts {
    bool up_projections = false;  // of latent attention's ranks to queries, keys and values
    bool feed_forward = false;    // of blocks without experts
    bool activations = false;     // between experts' two products
    bool norms = false;

    bool operator==(const RecomputedParts&) const = default;
};

/// How often a row is sent for its experts. each: to each of them (NCCL's all-to-all). once: once to each device that
/// has some of them, through one of its node's (DeepEP, HybridEP). by_size: each where the experts' ranks are one node,
/// once to each node else: what is taken where nobody says.
enum class ExpertRows { by_size, each, once };

/// What the host issues as CUDA graphs: nothing; a block's attention and router, so that dispatch and experts are left;
/// the whole step.
enum class HostGraphs { none, parts, step };

/// tensor x pipe x data x context devices; `zero` 1: optimizer in shares over data x context; 3: weights, too, gathered
/// before each use. `microbatches` of `microbatch` samples a step and replica. `overlap`: messages of data parallelism
/// run beside computation. Large: a plan is its settings, and what follows from several of them is said here once.
struct LanguagePlan {
    std::int64_t tensor = 1, pipe = 1, chunks = 1, data = 1, context = 1, experts = 1;
    int zero = 1;
    bool sequence_parallel = false, overlap = true;
    bool compiled = false;      // by torch.compile: what lies between products is fused
    bool async_tensor = false;  // messages of tensor groups go beside pieces of their products
    LanguageSoftware software = LanguageSoftware::megatron;
    AttentionKernel attention = AttentionKernel::fused;
    Float8Scaling float8 = Float8Scaling::delayed;
    Recomputation recompute = Recomputation::none;
    RecomputedParts again;
    ExpertRows expert_rows = ExpertRows::by_size;
    std::int64_t nodes_of_row = 0;  // that the experts of a row may stand on; 0: any
    bool experts_beside = false;    // experts' messages go beside the computation of another micro-batch
    bool weights_kept = false;      // ZeRO 3: gathered and summed once a step, and whole in between
    bool half_sums = false;         // gradients are summed in 16 bits
    HostGraphs graphs = HostGraphs::none;
    bool fused_experts = false;  // their products cast and activate what they give (Transformer Engine's CuTe kernels)
    bool library_attention = false;  // PyTorch's programs, too, take the vendor's
    bool attention_8bit = false;     // attention multiplies in 8 bits
    bool library_norms = false;      // normalizations and rotations by Transformer Engine's kernels
    std::int64_t microbatch = 1, microbatches = 1;
    DataType type = DataType::bf16;

    double ranks_of_weights() const { return static_cast<double>(data * context); }
    /// Devices that have the same expert. An expert's ranks are all devices of a stage.
    double replicas_of_expert() const {
        return std::max(1.0, static_cast<double>(tensor) * ranks_of_weights() / static_cast<double>(experts));
    }
    /// Whether weights are cast to 8 bits for a step's first micro-batch and kept so (Megatron-Core's
    /// is_first_microbatch of Transformer Engine), and not for each.
    bool casts_weights_once() const {
        return type == DataType::fp8 && float8 == Float8Scaling::delayed && zero < 3 && !is_pytorch();
    }
    bool is_pytorch() const { return software == LanguageSoftware::pytorch || software == LanguageSoftware::composer; }
    /// Type of rows, of weights as they are multiplied outside of 8-bit products, and of scores.
    DataType row_type() const { return type == DataType::fp8 ? DataType::bf16 : type; }
};

/// Returns the blocks of a stage: equally many, the first ones with one more. Where blocks for extra tokens follow the
/// last, all stages and chunks but the last ones are full, since they and their scores are the last one's (layouts of
/// Megatron Bridge's recipe of DeepSeek-V3).
struct StageBlocks {
    std::int64_t first = 0, count = 0;
};
StageBlocks blocks_of(const LanguageModel& model, const LanguagePlan& plan, StageIndex stage);

/// Returns the weights of a block on one rank: those that all ranks of a tensor group share out, and those of its
/// experts.
struct BlockWeights {
    double dense = 0, experts = 0;
};
BlockWeights weights_of(const LanguageModel& model, const LanguagePlan& plan, std::int64_t block);
/// Returns the weights of a stage on one rank, with the embedding on the first and the scores on the last. A table that
/// both share is one where they are one stage; else each has a copy (Megatron-LM's
/// share_embeddings_and_output_weights).
BlockWeights stage_weights(const LanguageModel& model, const LanguagePlan& plan, StageIndex stage);

}  // namespace rehearse::predict
