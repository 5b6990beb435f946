// SPDX-License-Identifier: Apache-2.0
// What pipeline stages cost, cut from the layers of one rank.
#pragma once

#include <cstdint>
#include <vector>

#include "search/costs.hpp"

namespace rehearse::search {

/// Of activations, in bytes.
struct ChunkMemory {
    double held = 0;     // of one micro-batch, until the chunk goes backward
    double passing = 0;  // beside what is held, at the fullest moment of one backward pass
};

struct Buffers {
    double exchanged_bytes = 0;  // of what is sent inside layers
    double bucket = 0;           // elements of a bucket of gradients
    double two_buckets = 0;      // of two beside each other
};

struct Stage {
    double forward_s = 0, backward_s = 0;  // of one micro-batch
    double longest_piece_s = 0;            // both, of the longest of its chunks
    double balanced_s = 0;                 // LayerCosts::balanced_s, by which schedules choose where to cut
    double longest_balanced_s = 0;         // of the longest of its chunks
    double weights = 0;                    // elements
    double expert_weights = 0;             // of these
    double buckets = 0;                    // of gradients of what is no expert, and of experts
    double expert_buckets = 0;
    double operand_bytes = 0;  // of all of these
    std::vector<ChunkMemory> chunks{};
    Buffers largest{};
    double handed_bytes = 0;  // of one micro-batch to the next stage, or around to the first, by all of its chunks
    double first_handed_bytes = 0;  // ... by the first of them
    int hand_overs = 0;             // how often
};

/// `stages` stages of `chunks` pieces each, the costliest piece as cheap as can be. Empty: fewer layers that compute
/// than pieces.
std::vector<Stage> stages_of(const LayerCosts& costs, std::int64_t stages, int chunks);

/// Where layers may be cut instead, so that pieces hand on less and are at most 1, 3, 10, 30, 100 and 300 % costlier:
/// schedules take the fastest of such cuts (schedule/cuts.hpp). It is the same whatever is computed again. For numbers
/// of pieces of which `stages_of` has stages.
std::vector<std::vector<std::size_t>> cuts_by_bytes(const LayerCosts& costs, std::size_t pieces);

/// Stages of pieces that end there.
std::vector<Stage> stages_of(const LayerCosts& costs, const std::vector<std::size_t>& ends, std::int64_t stages);

}  // namespace rehearse::search
