// SPDX-License-Identifier: Apache-2.0
// What a step of a transformer takes by its plan, from the tiles of its products, the bytes of everything else and the
// messages of its groups: a closed form for plans that are compared, beside the simulation of schedules.
// docs/language_models.md explains it.
#pragma once

#include "core/machine.hpp"
#include "predict/language_plan.hpp"
#include "prices/tile_model.hpp"

namespace rehearse::predict {

/// Bytes a second that a ring moves past a device, each way.
struct LanguageNode {
    std::int64_t devices = 8;
    Bandwidth inside;
    Bandwidth outside;
    std::int64_t half = 8;         // devices behind one root complex: groups of more reach less
    double across = 1;             // of `inside`, rings
    double all_to_all_across = 1;  // of `inside`, all-to-alls
    bool shared = false;           // rings of several groups go the same way
};

struct LanguageTime {
    Seconds compute;    // of a stage, all micro-batches
    Seconds messages;   // of tensor, context and expert groups and between stages, all micro-batches
    Seconds bubble;     // waiting for the first and the last micro-batch
    Seconds gradients;  // gathers and sums over data parallelism that nothing hides
    Seconds update;
};
Seconds total(const LanguageTime& time);

/// `device` has tiles and the plan's type. InputError where it has not.
LanguageTime language_time(const LanguageModel& model, const LanguagePlan& plan, const DeviceClass& device,
                           const LanguageNode& node);

}  // namespace rehearse::predict
