// SPDX-License-Identifier: Apache-2.0
// Asynchronous pipelines: how many versions of its weights a rank keeps.
#pragma once

#include "core/schedule.hpp"

namespace rehearse {

/// Whether each micro-batch updates the weights, so that a micro-batch's backward pass needs those of its forward pass.
bool updates_each_micro_batch(const RankClass& rank_class);

/// Micro-batches that have begun and not ended, at most, where each of them updates the weights: each needs a version
/// of its own. Otherwise 1.
int weight_versions(const RankClass& rank_class);

}  // namespace rehearse
