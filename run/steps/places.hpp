// SPDX-License-Identifier: Apache-2.0
// Where a rank's part lies in the whole: its blocks of samples, of a dropout's mask, of a table.
#pragma once

#include <cstdint>
#include <vector>

#include "run/rank_context.hpp"

namespace rehearse::run {

/// Where the elements of a rank's block of a sample, of its labels and ids, lie in a whole one; empty: it has all of
/// it.
struct Blocks {
    std::vector<std::int64_t> input, labels, ids;
    std::int64_t whole_input = 0, whole_labels = 0, whole_ids = 0;  // elements
    /// Where ids are those of several samples, how far from its own each of these lies in the global batch; empty: they
    /// are of its own sample.
    std::vector<std::int64_t> samples{};
};
Blocks blocks_of(const RankContext& rank);

/// Returns where each element of a layer's output lies in the whole layer's, of one sample; empty: it is the whole.
std::vector<std::int64_t> places_in_sample(const RankContext& rank, int layer);
/// The same of a dropout with dense=shared, whose rows are a sample of each rank of the data axis.
std::vector<std::int64_t> places_in_samples_of_all(const RankContext& rank, const Dropout& dropout);
/// Returns the first row that this rank has of a table, of scores, or of a sequence that it turns by place, which lie
/// in parts on the ranks.
std::int64_t first_row(const RankContext& rank, int layer);
/// Returns how many times as many losses the whole sample has as this rank's block of it: 1 unless pixels or tokens are
/// shared.
std::int64_t losses_of_whole(const RankContext& rank, int layer);

}  // namespace rehearse::run
