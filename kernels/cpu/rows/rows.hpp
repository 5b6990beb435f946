// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/backend.hpp"

namespace rehearse::kernels::cpu {

/// Algorithm "rows": what goes over rows at the speed of memory: layer normalization, tables (Embedding, EmbeddingBag),
/// the loss, Adam and LAMB.
const Backend& rows();

}  // namespace rehearse::kernels::cpu
