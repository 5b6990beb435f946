// SPDX-License-Identifier: Apache-2.0
// PipeDream's weight stashing (Narayanan et al. 2019): what a micro-batch's forward pass reads is kept for its backward
// pass.
#pragma once

#include <set>
#include <vector>

#include "run/rank_context.hpp"
#include "run/steps/ready_step.hpp"

namespace rehearse::run {

/// To be asked in the order of the steps.
class WeightVersions {
public:
    explicit WeightVersions(RankContext& rank);

    /// Returns which memory a micro-batch reads for `weights`: the latest ones, or its version of them.
    kernels::View of(kernels::View weights, int micro_batch);
    /// Lets a step that is the first of its micro-batch keep the latest weights for it.
    void keep(ReadyStep& ready, int micro_batch);

private:
    RankContext& rank_;
    std::vector<std::vector<float>> versions_;  // of all weights, by slot; none where the latest are always right
    std::set<int> begun_;                       // micro-batches
};

}  // namespace rehearse::run
