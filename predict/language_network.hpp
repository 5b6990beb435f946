// SPDX-License-Identifier: Apache-2.0
// The decoder that a network is and the plan that a schedule follows, in the words of the closed form of memory.
#pragma once

#include <optional>
#include <vector>

#include "core/network.hpp"
#include "predict/language_memory.hpp"
#include "schedule/plan.hpp"

namespace rehearse::predict {

/// Returns the decoder that a network is, told by its table of words, products and attention. Nothing where the network
/// is no decoder of like blocks, has experts or latent attention, or other weights than that decoder by more than half
/// a percent. A table that words and scores share is counted once.
std::optional<LanguageModel> language_model_of(const Network& network);

/// Returns the plan that a schedule follows. Nothing where the plan has axes, methods of pipelines or types that the
/// closed form has not: it knows data, tensor and pipe, 1F1B, bf16 with gradients in f32, or f32, and Adam. Nothing
/// where stages end behind layers that the plan names, layers are cut other than in turns, or a method of training
/// keeps something of its own.
std::optional<LanguagePlan> language_plan_of(const schedule::Plan& plan, const Schedule& schedule);

/// Returns what a rank of each stage has allocated, by Megatron-Core's accounting; empty where either is nothing, or
/// the ranks along tensor are no divisor of the heads, the heads of keys and the width of the feed-forward layer.
std::vector<LanguageMemory> language_memory_of_stages(const schedule::Plan& plan, const Schedule& schedule);

/// Returns what the fullest rank has allocated: by that accounting, or as the schedule counts where it is empty.
Bytes language_memory_peak(const schedule::Plan& plan, const Schedule& schedule);

}  // namespace rehearse::predict
