// SPDX-License-Identifier: Apache-2.0
// A training step in figures: what a prediction and a measurement have in common.
#pragma once

#include <cstdint>
#include <vector>

#include "core/schedule.hpp"
#include "core/timeline.hpp"
#include "core/units.hpp"

namespace rehearse {

struct StepFigures {
    std::int64_t devices = 0;  // the ranks, and servers that have devices of their own
    std::int64_t global_batch = 0;
    Summary time;  // the step and its parts
    Flops work;    // of a step: forward and backward of all samples
    Bytes memory;  // of the fullest rank, at its fullest moment
    /// Share of the samples that the step learns from: what comes after its quorum is thrown away.
    double counted = 1;
    double samples_per_s() const { return counted * static_cast<double>(global_batch) / time.step.value; }
    FlopRate flops_per_s() const { return counted * work / time.step; }
};
StepFigures figures_of(const Schedule& schedule, const Summary& time);

/// Of training with servers: how old the weights were that gradients were computed with.
struct Staleness {
    std::vector<std::int64_t> updates;  // how many were by gradients at weights that 0, 1, 2, ... others had come after
    double mean() const;
    std::int64_t most() const { return updates.empty() ? 0 : static_cast<std::int64_t>(updates.size()) - 1; }
};

}  // namespace rehearse
