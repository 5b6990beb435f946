// SPDX-License-Identifier: Apache-2.0
// When one rank makes each output and each gradient of an output, and when it last reads it.
#pragma once

#include <vector>

#include "core/schedule.hpp"
#include "schedule/memory.hpp"

namespace rehearse::schedule {

/// Adds the fullest step's activations and gradients of these to `use`.
void add_activations(const Schedule& schedule, const RankClass& rank_class, MemoryUse& use);

/// What each layer holds of one micro-batch, in bytes, so that it can be said of any stage [begin, end) of the layers.
/// Once its forward passes are done, a stage holds
///
///   sum of held[begin..end) + taken[begin] - left[end],
///
/// and while layer i goes backward as much as it holds up to that layer (with nothing left), and passing[i]. Where a
/// stage's outputs are all computed again at once, it is this that it then holds of a single micro-batch.
struct LayerMemory {
    std::vector<double> held;       // until it goes backward: its output and what it keeps beside that
    std::vector<double> taken;      // of layers before it, what it or a later one reads when it goes backward
    std::vector<double> left;       // of this, what none before it reads then
    std::vector<double> passing;    // at the fullest step of its backward passes
    std::vector<double> exchanged;  // in the largest buffer of what is sent inside of it
};
/// Of a schedule of one micro-batch and one stage.
LayerMemory layer_memory(const Schedule& schedule, const RankClass& rank_class);

}  // namespace rehearse::schedule
