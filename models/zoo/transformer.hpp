// SPDX-License-Identifier: Apache-2.0
// Transformers by their published sizes.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "core/network.hpp"

namespace rehearse::models {

/// Encoder: BERT, normalization after each half of a block (Devlin et al. 2018). Decoder: GPT, causal, normalization
/// before (Radford et al. 2019).
enum class TransformerKind { encoder, decoder };

/// What is asked of an encoder's rows: the word of each; that of five in 32, the masked ones (BERT's programs gather 20
/// of 128 and 80 of 512, max_predictions_per_seq); or two scores of each, whether an answer begins and ends there
/// (SQuAD, Devlin et al. 2018, section 4.2).
enum class Asked { words, masked, answers };

struct Transformer {
    std::string_view name;
    TransformerKind kind = TransformerKind::decoder;
    std::int64_t layers = 1, hidden = 64, heads = 1;
    std::int64_t vocabulary = 1, positions = 1;  // rows of the tables
    std::int64_t segments = 0;
    double keep = 0.9;         // of dropout after the embedding and after each half of a block; 1: none
    std::int64_t inner = 0;    // width between the two dense layers of a block; 0: four times hidden
    std::int64_t experts = 0;  // of a mixture in place of these two; 0: there is none
    std::int64_t top = 1;      // of them that a token goes to
    double room = 1.25;        // capacity of all experts over what tokens would fill if they spread evenly
    std::int64_t group = 1;    // samples whose tokens compete (Routing)
    Asked asked = Asked::words;
};

/// On samples of `sequence` tokens, at most `positions`. The scores come from the table of tokens (tied); the loss is
/// taken at every token: the next one of a decoder, the token itself of an encoder, masked or not. Of Asked::masked at
/// the first five in 32 (two at least), which are as many as the masked ones, wherever these lie.
Network transformer(const Transformer& size, std::int64_t sequence);

/// A published transformer by name: bert-base, gpt2-xl, megatron-1t, ...; none of that name: nothing.
const Transformer* find_transformer(std::string_view name);

/// "gpt3-175b" with all its positions as the sequence, "bert-large@128" with 128 tokens,
/// "gpt-h1024-a16-l24-v50304@1024" a decoder of any size, "gpt-h1024-a16-l24-e64" one whose blocks are mixtures of 64
/// experts, the best of which each token goes to (-t2: the two best). InputError when there are more tokens than
/// positions, or a size cannot be.
std::optional<Network> load_transformer(std::string_view name);

}  // namespace rehearse::models
