// SPDX-License-Identifier: Apache-2.0
// What pipeline stages cost, cut from the layers of one rank.
#pragma once

#include <cstdint>
#include <vector>

#include "search/costs.hpp"

namespace rehearse::search {

struct Stage {
    double forward_s = 0, backward_s = 0;  // of one micro-batch
    double longest_piece_s = 0;            // both, of the longest of its chunks
    double weights = 0;                    // elements
    double expert_weights = 0;             // of these
    double buckets = 0;                    // of gradients of what is no expert, and of experts
    double expert_buckets = 0;
    double operand_bytes = 0;  // of all of these
    double held_bytes = 0;     // of one micro-batch
    double passing_bytes = 0;
    double handed_bytes = 0;  // of one micro-batch to the next stage, or around to the first, by all of its chunks
    double first_handed_bytes = 0;  // ... by the first of them
    int hand_overs = 0;             // how often
};

/// `stages` stages of `chunks` pieces each, the costliest piece as cheap as can be. Empty: fewer layers that compute
/// than pieces.
std::vector<Stage> stages_of(const LayerCosts& costs, std::int64_t stages, int chunks);

/// Those cut to hand on less, with pieces at most 1, 3, 10, 30, 100 and 300 % costlier: schedules take the fastest of
/// such cuts (schedule/cuts.hpp). For numbers of stages and chunks of which `stages_of` has stages.
std::vector<std::vector<Stage>> stages_by_bytes(const LayerCosts& costs, std::int64_t stages, int chunks);

}  // namespace rehearse::search
