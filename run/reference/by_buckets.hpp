// SPDX-License-Identifier: Apache-2.0
// What ranks make of the gradients that each has of its own samples, bucket by bucket, written out for one rank.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "run/reference/single_rank.hpp"

namespace rehearse::run {

/// Where the gradients of each layer of the whole network begin among all of them.
std::vector<std::int64_t> beginnings(Program& whole);
/// Where each element of a rank's bucket lies among the gradients of the whole network, or `padding`; and where each of
/// its layers ends.
struct Places {
    std::vector<std::int64_t> of;
    std::vector<std::size_t> ends{};
};
Places places_of(const Schedule& schedule, const std::vector<std::int64_t>& begins, RankIndex rank, int bucket);

/// What each of some ranks has of a bucket, and by how much rounding may have changed it: nothing where their bits are
/// equal to those of one rank.
struct Own {
    std::vector<std::vector<float>> gradients, reach{};
};
/// Turns what each of `ranks` has of their bucket `bucket`, in their order, into what all of them then have.
using Combine = std::function<std::vector<float>(std::span<const RankIndex> ranks, int bucket, const Own& own)>;

/// Adds up.
Combine summing();
/// Sends few bits of each, and adds up what has come; what is left out is kept for the next call.
/// `single` outlives it.
Combine compressing(const SingleRank& single, int perturbation);
/// Counts signs: 1 where more are above 0, -1 where fewer are, else 0. A 0 counts as one above.
Combine voting(const SingleRank& single, int perturbation);
/// Combines two by two, as Adasum.
Combine combining_by_adasum();

/// What a rank's gradient is, of its samples: its part of the mean over the whole batch, or the mean over its own (over
/// those of all ranks that have made it together).
enum class Of { batch, shard };

/// What ranks do with gradients of which a method makes nothing else.
struct Combined {
    Combine combine;
    Of of = Of::batch;
};
Combined combined_by(const SingleRank& single, int perturbation);

/// Returns the gradients of the whole network, laid out as those of `whole`, after the ranks of each group that has a
/// bucket's weights have combined theirs. `made` has the gradients of each part's mean loss. What several ranks
/// with other samples have made together before (of experts, of dense layers that the ranks share) is one rank's.
std::vector<float> brought_together(const SingleRank& single, Program& whole, const BatchGradients& made,
                                    const Combine& combine, Of of);

/// The optimizer's step in half `half` of step `step` of a search by gradients: of the weights whose turn it is. Of
/// these `gradients`, layer by layer, become those of `program`.
void update_half(const SingleRank& single, Program& program, int step, int half);
void take_half(const SingleRank& single, Program& program, int half, std::vector<std::vector<float>>& gradients);

/// A training in which gradients are combined so, also with lag=1 and in a pipeline that updates after each
/// micro-batch.
Trained train_by_buckets(const SingleRank& single, int perturbation, const Combine& combine, Of of);

}  // namespace rehearse::run
