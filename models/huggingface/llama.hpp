// SPDX-License-Identifier: Apache-2.0
// What decoders of Llama's kind put in the place of its attention and of its mlp.
#pragma once

#include <string>

#include "models/huggingface/rows.hpp"

namespace rehearse::models::huggingface {

/// Multi-head latent attention (DeepSeek-V2 2024, section 2.1): queries, keys and values from narrow rows.
int latent_attention(Rows& rows, const Config& config, const std::string& name, int from);

/// The module that is a mixture of experts in block `index`: "mlp" or "block_sparse_moe"; empty where there is none.
std::string mixture_name(const Config& config, const std::string& type, std::int64_t index);
/// Each token's best experts (Shazeer et al. 2017), which it reaches whatever others do, and those that all tokens
/// share. Costed as if tokens spread evenly.
int experts(Rows& rows, const Config& config, const std::string& type, const std::string& name, int from);

}  // namespace rehearse::models::huggingface
