// SPDX-License-Identifier: Apache-2.0
// Steps in which ranks bring together, or hand on, what a layer has made: sums, pieces, halos and whole tensors.
#pragma once

#include <cstddef>
#include <vector>

#include "run/rank_context.hpp"
#include "run/steps/gradient_sums.hpp"
#include "run/steps/ready_step.hpp"

namespace rehearse::run {

/// To be asked in the order of the steps.
class LayerMessages {
public:
    /// What it is given outlives it.
    LayerMessages(RankContext& rank, GradientSums& gradients)
        : rank_(rank), gradients_(gradients), joints_(rank.part().network.layers.size()) {}

    /// Of a layer, not of a bucket.
    void prepare(ReadyStep& ready, const Communicate& communicate);
    void prepare(ReadyStep& ready, const Send& send) const;
    void prepare(ReadyStep& ready, const Recv& recv);

private:
    void prepare_pieces(ReadyStep& ready, const Communicate& communicate);
    void prepare_exchange(ReadyStep& ready, const Communicate& communicate);
    Movement movement(int layer) const;

    RankContext& rank_;
    GradientSums& gradients_;
    std::vector<std::vector<std::byte>> joints_;  // by layer: pieces of all ranks
};

}  // namespace rehearse::run
