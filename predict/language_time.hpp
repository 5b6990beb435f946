// SPDX-License-Identifier: Apache-2.0
// What a step of a transformer takes by its plan, from the tiles of its products, the bytes of everything else and the
// messages of its groups: a closed form for plans that are compared, beside the simulation of schedules.
// docs/language_models.md explains it.
#pragma once

#include "core/machine.hpp"
#include "predict/language_node.hpp"
#include "predict/language_plan.hpp"

namespace rehearse::predict {

struct LanguageTime {
    Seconds compute;    // of a stage, all micro-batches, on the slowest card
    Seconds messages;   // of tensor, context and expert groups and between stages, all micro-batches
    Seconds bubble;     // waiting for the first and the last micro-batch
    Seconds gradients;  // of data parallelism: what nothing hides, copies, and what hidden messages cost computation
    Seconds update;
};
Seconds total(const LanguageTime& time);

/// `device` has tiles and the plan's type. InputError where it has not.
LanguageTime language_time(const LanguageModel& model, const LanguagePlan& plan, const DeviceClass& device,
                           const LanguageNode& node);

}  // namespace rehearse::predict
