// SPDX-License-Identifier: Apache-2.0
// Operators of transformers and recommendation models, and the optimizers that train them. Included by op.hpp, which
// says what an operator is.
#pragma once

#include <cstdint>

namespace rehearse {

/// Scaled dot-product attention, softmax(Q K^T / sqrt(head_size)) V for each of `heads` heads (Vaswani et al. 2017,
/// equation 1). Inputs q {queries, heads * head_size}, k and v {keys, heads * head_size}; or, `packed`, one input
/// {queries, 3 * heads * head_size} whose rows are [q | k | v], as one dense layer makes them. Output {queries, heads *
/// head_size}. Tensor parallelism gives each rank some of the heads: `heads` shrinks, nothing else changes. `causal`:
/// query i sees keys 0 .. i + keys - queries, so that the last query sees all; it needs queries <= keys. The backward
/// pass gives all three gradients. `kept`: the program is of before FlashAttention (Dao et al. 2022) and keeps, from
/// forward to backward, the probabilities, their dropout's mask and what it leaves of them (Korthikanti et al. 2022,
/// section 4.1); else backward makes the probabilities again, tile by tile. `key_heads`: heads of keys and values, each
/// for as many heads of queries one after the other (grouped-query attention: Ainslie et al. 2023; 1: multi-query,
/// Shazeer 2019); 0: as many as `heads`. `value_size`: numbers of a head's values and of its result, where they are not
/// as many as a key's (multi-head latent attention: DeepSeek-V2 2024, section 2.1); 0: head_size.
struct Attention {
    std::int64_t heads = 1, queries = 1, keys = 1, head_size = 1;
    bool causal = false;
    bool packed = false;
    bool kept = false;
    std::int64_t key_heads = 0, value_size = 0;
    bool operator==(const Attention&) const = default;
};
constexpr std::int64_t key_heads(const Attention& op) { return op.key_heads == 0 ? op.heads : op.key_heads; }
constexpr std::int64_t value_size(const Attention& op) { return op.value_size == 0 ? op.head_size : op.value_size; }
/// Numbers of one row of queries, of keys, of values and of the result, of all heads.
constexpr std::int64_t query_width(const Attention& op) { return op.heads * op.head_size; }
constexpr std::int64_t key_width(const Attention& op) { return key_heads(op) * op.head_size; }
constexpr std::int64_t value_width(const Attention& op) { return key_heads(op) * value_size(op); }
constexpr std::int64_t result_width(const Attention& op) { return op.heads * value_size(op); }

/// Layer normalization of each row (Ba et al. 2016), epsilon 1e-5; weights gamma {features}, beta {features}. Shape
/// {rows, features}, or {features} where rows is 1. One kernel gives all gradients, as for BatchNorm.
struct LayerNorm {
    std::int64_t rows = 1, features = 1;
    bool operator==(const LayerNorm&) const = default;
};

/// Rows of a table picked by integer ids {tokens}: dst {tokens, width}, row t = weights[id_t] + positions[t] +
/// segments[segment of t]. `positions` and `segments`, tables of their own, are left out where 0. Segments cut a sample
/// into equal parts, as BERT's two sentences (Devlin et al. 2018, figure 2). The gradient is dense, as all-reduces sum
/// it. Of a table that lies in equal shares on `parts` ranks, `vocabulary` is one rank's share: ids of other ranks'
/// rows give nothing, and positions and segments are added by the rank with the first share (each makes their
/// gradient). Rows beyond the words of the whole are there to make the shares equal.
struct Embedding {
    std::int64_t tokens = 1, vocabulary = 1, width = 1;
    std::int64_t positions = 0, segments = 0;
    std::int64_t parts = 1;
    bool operator==(const Embedding&) const = default;
};

/// What a rank that has `classes` of the scores of each row, of `parts` ranks, adds to the softmax cross-entropy of the
/// row: dst {rows, 3} holds its largest score m, the sum of exp(score - m) of all classes but the label, and the score
/// of the label or, where another rank has it, 0. Megatron-LM (Shoeybi et al. 2019, section 3) sums these one by one
/// over the ranks, with the label in the sum; here they are gathered, and what is left to a label that is nearly
/// certain keeps its digits. The gradient takes m for a constant: what it adds through the sum and through the loss
/// cancels. Of the classes of all ranks the first `words` exist (0: all do); the others, which fill up the last ranks'
/// shares, are never chosen and have no gradient.
struct SoftmaxTerms {
    std::int64_t classes = 1, rows = 1, parts = 1;
    std::int64_t words = 0;
    bool operator==(const SoftmaxTerms&) const = default;
};
/// Classes of the first rank.
constexpr std::int64_t own_classes(const SoftmaxTerms& op) {
    return op.words == 0 || op.words > op.classes ? op.classes : op.words;
}

/// The loss of {rows, 3 * parts}, the SoftmaxTerms of all ranks: as SoftmaxLoss, the mean over the rows, {1} a sample.
/// Of one part there is no label: it is log(sum) + m - score of its three terms, a mean where these are (0, 1, -mean).
struct TermsLoss {
    std::int64_t rows = 1, parts = 1;
    bool operator==(const TermsLoss&) const = default;
};

/// `tables` tables of `vocabulary` rows each; ids {tables * lookups}, table by table; dst {tables, width} holds the sum
/// of the `lookups` rows picked of each (DLRM: Naumov et al. 2019). The gradient is dense. A rank that has some of the
/// tables for the samples of all ranks looks up `samples` of them, one of each rank, in one of its own: ids {samples *
/// tables * lookups}, dst {samples * tables, width}. `direct`: there is no gradient; backward_weights is plain SGD's
/// step itself, on the rows that were picked alone (Kalamkar et al. 2020, section III).
struct EmbeddingBag {
    std::int64_t tables = 1, lookups = 1, vocabulary = 1, width = 1;
    std::int64_t samples = 1;
    bool direct = false;
    bool operator==(const EmbeddingBag&) const = default;
};

/// DLRM's interaction (Naumov et al. 2019, section 2.1.3): inputs dense {width} and sparse {vectors - 1, width}; output
/// the dense input, then the dot products of all pairs of different vectors: {width + vectors (vectors - 1) / 2}.
struct Interaction {
    std::int64_t vectors = 2, width = 1;
    bool operator==(const Interaction&) const = default;
};

/// Adam (Kingma and Ba 2015) with decoupled weight decay (AdamW, Loshchilov and Hutter 2019) over `count` parameters.
struct AdamUpdate {
    std::int64_t count = 0;
    bool operator==(const AdamUpdate&) const = default;
};

/// LAMB (You et al. 2020, algorithm 2) over `count` parameters in `tensors` tensors, each with its own trust ratio.
struct LambUpdate {
    std::int64_t count = 0, tensors = 1;
    bool operator==(const LambUpdate&) const = default;
};

}  // namespace rehearse
