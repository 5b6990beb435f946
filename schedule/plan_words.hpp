// SPDX-License-Identifier: Apache-2.0
// The words of the plan language, and how each is read.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "schedule/plan.hpp"

namespace rehearse::schedule {

/// Averaging::elastic until the mesh is known: 1 / all models.
inline constexpr double one_of_all_models = -1;

struct Word {
    PlanWord word;
    void (*read)(Plan& plan, std::string_view value);
};
/// The data axis and its options; the other axes, each before its options.
std::span<const Word> data_words();
std::span<const Word> other_words();

/// What a complete plan cannot be; fills in what was left open. InputError.
void complete(Plan& plan);

inline constexpr std::int64_t unknown_servers = -1;  // Servers::count: `server` without a number

// What several words are read by.
void add_axis(Plan& plan, const char* name, std::string_view size);
/// on or off.
bool read_switch(std::string_view name, std::string_view value);
inline constexpr int most_micro_batches = 1'000'000;
/// From 1 to `most`.
int read_count(std::string_view name, std::string_view value, int most);
/// A number between 0 (not itself) and `most`.
double read_share(std::string_view name, std::string_view value, double most);
void read_micro_batches(Plan& plan, std::string_view value);
void read_micro_batch(Plan& plan, std::string_view value);
void read_recompute(Plan& plan, std::string_view value);
void read_attention(Plan& plan, std::string_view value);
inline constexpr std::string_view recompute_text =
    "forward again before backward, to hold fewer activations: all of a stage at once, block after block, or attention "
    "alone (of attention=kept, which it implies); default off";
inline constexpr std::string_view attention_text =
    "fused: backward makes attention's probabilities again in its kernel (FlashAttention); kept: it reads what forward "
    "kept of them, 5 bytes a pair of tokens and head in 16 bits (programs before 2022); default fused";

}  // namespace rehearse::schedule
