// SPDX-License-Identifier: Apache-2.0
// What a point says beside its step: each part from the setup that was simulated.
#pragma once

#include <optional>

#include "predict/job.hpp"
#include "predict/prediction.hpp"

namespace rehearse::predict {

/// Returns steps under the conditions' jitter; nothing where there is none.
std::optional<NoisyStep> noisy_step(const Setup& setup);
/// Returns what reading the samples takes of their tier; nothing where they are in memory.
std::optional<Input> input_of(const Setup& setup, const Point& point, std::optional<std::int64_t> dataset);
/// Returns what checkpoints take of the training; nothing where none are written.
std::optional<Checkpoints> checkpoints_of(const Setup& setup, Seconds step);
/// Returns when the groups of a training with servers are through, from its timeline.
Through through_of(const Schedule& schedule, const Timeline& timeline);

}  // namespace rehearse::predict
