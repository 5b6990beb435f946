// SPDX-License-Identifier: Apache-2.0
// Where samples come from.
#pragma once

#include <string>

#include "core/schedule.hpp"

namespace rehearse::schedule {

struct InputData {
    std::string tier;  // of the machine's storage
    Bytes sample;      // as stored
};

/// Bytes of one sample of the network's inputs as f32 numbers, or as 8-byte integers where they are words.
Bytes sample_size(const Network& network);

/// Each rank that works on the network's input reads the samples of a step from the tier while it computes the step
/// before (prefetch of one step): a Load on the io stream that no step waits for but the next training step. Ranks
/// along a tensor axis read a share each.
void add_input(Schedule& schedule, const InputData& input);

}  // namespace rehearse::schedule
