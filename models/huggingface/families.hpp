// SPDX-License-Identifier: Apache-2.0
// The families of networks that a config.json may describe, one file each.
#pragma once

#include <string>
#include <vector>

#include "models/huggingface/config.hpp"

namespace rehearse::models::huggingface {

/// What a family builds its network from: the config, the sizes of a sample, and where it leaves its notes.
struct Request {
    const Config& config;
    Sizes& sizes;
    std::string name;          // of the network
    std::string architecture;  // "LlamaForCausalLM"; empty when the file does not say
    std::vector<std::string>& notes;
};

/// Decoders with rotary embeddings and gated blocks: Llama, Mistral, Qwen2 and Qwen3, those with mixtures of experts
/// (Mixtral, Qwen2-MoE, Qwen3-MoE), DeepSeek-V2 and -V3 with their latent attention, Gemma and Gemma 2, Phi-3.
Network llama(const Request& request);
/// BERT, RoBERTa, DistilBERT, ELECTRA and ALBERT.
Network bert(const Request& request);
Network bloom(const Request& request);
Network falcon(const Request& request);
Network gpt2(const Request& request);
Network gpt_neox(const Request& request);
Network opt(const Request& request);
Network phi(const Request& request);
Network t5(const Request& request);
Network vit(const Request& request);
Network swin(const Request& request);

/// The length of a sequence: --sizes tokens=N, else the positions that the config's `key` names, without `unused` rows
/// before the first token's, at most 8192 of them.
std::int64_t tokens_of(const Request& request, std::string_view key, std::int64_t unused = 0);
/// The same where no table holds the positions (rotary embeddings, ALiBi): longer sequences are taken, with a note.
std::int64_t unbounded_tokens_of(const Request& request, std::string_view key);
/// InputError unless the architecture is one of these, or not said.
void only_architectures(const Request& request, const std::vector<std::string_view>& known);

/// The network of a config.json, by its text; `origin` stands before its errors. `typed`: what named the tokens in the
/// place of --sizes.
Network from_config(std::string_view text, const std::string& origin, const std::string& name,
                    const ImportOptions& options, const std::string& typed = "");

}  // namespace rehearse::models::huggingface
