// SPDX-License-Identifier: Apache-2.0
// What sequence parallelism gathers twice instead of keeping it.
#pragma once

#include "core/network.hpp"

namespace rehearse {

/// Whether a layer joins the ranks' rows of a sequence for its reader, or for those that read the same rows one after
/// the other (queries, keys and values): of these, each rank keeps its own from forward to backward and gathers the
/// whole again for the gradients of the weights (Korthikanti et al. 2022, section 4.2.2).
inline bool gathers_again(const Layer& layer) {
    const auto* op = std::get_if<Communication>(&layer.op);
    return op != nullptr && op->movement == Movement::all_gather && op->axis == "tensor";
}

}  // namespace rehearse
