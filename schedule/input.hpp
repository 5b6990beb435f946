// SPDX-License-Identifier: Apache-2.0
// Where samples come from.
#pragma once

#include <string>
#include <vector>

#include "core/schedule.hpp"

namespace rehearse::schedule {

struct InputData {
    std::string tier;  // of the machine's storage; empty: samples are in memory
    Bytes sample;      // as stored
};

/// Bytes of one sample of the network's inputs as f32 numbers, or as 8-byte integers where they are words.
Bytes sample_size(const Network& network);

/// Whether ranks of a class read samples: a later stage of a pipeline gets what its neighbour computed.
bool reads_samples(const Schedule& schedule, const RankClass& rank_class);

/// Each rank that works on the network's input reads the samples of a step from the tier while it computes the step
/// before (prefetch of one step): a Load on the io stream that no step waits for but the next training step. Ranks
/// along a tensor axis read a share each, those along spatial axes their blocks of each sample.
void add_input(Schedule& schedule, const InputData& input);

/// The same by the process that trains, which does nothing else meanwhile (PyTorch's DataLoader without workers):
/// before all else of a step it reads the samples, if they lie in a tier, and takes the batch in memory, of numbers as
/// sample_size() has them, through each of `by`: tiers of the machine (sim/host/loader.hpp), one after the other.
void add_inline_input(Schedule& schedule, const InputData& input, const std::vector<std::string>& by);

}  // namespace rehearse::schedule
