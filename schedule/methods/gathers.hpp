// SPDX-License-Identifier: Apache-2.0
// ZeRO 3 (Rajbhandari et al. 2020; as fully sharded data parallelism, Zhao et al. 2023): each rank keeps its piece of
// every weight, and a bucket's weights are gathered for as long as its layers are at work.
#pragma once

#include <map>

#include "core/schedule.hpp"

namespace rehearse::schedule {

/// Returns the bucket whose weights a step reads: its layer's own, or those that it shares; -1: none.
std::vector<int> buckets_used(const RankClass& rank_class);

/// Puts all-gathers of weights, by `algorithms` of each bucket's axis, into the steps of a class whose updates are
/// sharded. A bucket is gathered while the one
/// before it is at work, so that two are held at a time; what the next steps need again is kept.
///
///   compute        forward of 0    1     2     backward of 2     1     0
///   communication  [0][1]      [2]                            [0]
///
/// (Buckets are numbered here in the order of their use; 2 and 1 are still held when the backward pass begins.)
void gather_weights(const Mesh& mesh, const std::map<int, Algorithm>& algorithms, DataType type, RankClass& rank_class);

/// Returns the elements of gathered weights that are held at once, at most.
std::int64_t most_gathered(const RankClass& rank_class);

}  // namespace rehearse::schedule
