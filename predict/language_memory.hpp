// SPDX-License-Identifier: Apache-2.0
// What a rank that trains a transformer by Megatron-Core with Transformer Engine has allocated at its fullest moment,
// by kind. docs/language_models.md explains each of them.
#pragma once

#include <vector>

#include "core/units.hpp"
#include "predict/language_plan.hpp"
#include "schedule/memory.hpp"

namespace rehearse::predict {

struct LanguageMemory {
    Bytes weights;      // in the compute type
    Bytes gradients;    // f32, whole
    Bytes optimizer;    // f32 weights and both moments, in shares where ZeRO has them
    Bytes activations;  // of all micro-batches that a stage has begun and not ended
    Bytes again;        // a block that is computed again for its backward pass, beside its activations above
    Bytes loss;         // scores of the last stage and what makes their gradient; no block is computed again meanwhile
    Bytes stand_ins;    // gradients that are never read, one of each shape of a product's weights
    Bytes messages;     // gathered rows of sequence parallelism, rows in flight between stages
    StageIndex stage{0};
};
Bytes total(const LanguageMemory& memory);

/// Returns the rows of a table: one a kind, the total last.
std::vector<schedule::MemoryRow> rows(const LanguageMemory& memory);

LanguageMemory language_memory(const LanguageModel& model, const LanguagePlan& plan, StageIndex stage);
/// Returns what the stage that has most has allocated.
LanguageMemory language_memory(const LanguageModel& model, const LanguagePlan& plan);

}  // namespace rehearse::predict
