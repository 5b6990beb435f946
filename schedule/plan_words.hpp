// SPDX-License-Identifier: Apache-2.0
// The words of the plan language: how each is read, and what goes with what. An axis or a method has a Vocabulary.
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

/// What a user asks for, as far as it is known: reading a plan knows no job, which then is the default one.
struct Asked {
    const Plan& plan;
    const Job& job;
};

/// Whether two features that do not go together ever will.
enum class When : std::uint8_t { later, never };

struct Conflict {
    std::string_view with;  // the name of another feature
    When when = When::later;
    std::string_view why;        // ends a sentence: no full stop
    std::string_view unless{};   // a third feature, with which they do
    std::string_view instead{};  // what to do; empty: leave out one
};

struct Need {
    std::string_view feature;
    std::string_view written;  // "server=N"
    std::string_view why;
};

/// Something that a plan or its job can ask for and that decides what else can be asked for.
struct Feature {
    std::string_view name;     // as messages and the table of `--plan help` call it: "kfac", "zero=3"
    std::string_view example;  // the shortest plan that asks for it, and for what it needs
    bool (*in)(const Asked& asked);
    std::span<const Conflict> conflicts{};  // each pair is listed at one of both
    std::span<const Need> needs{};
    void (*ask)(Job& job) = nullptr;  // of a feature of the job, which an example cannot say
};

/// What an axis or a method adds to the plan language.
struct Vocabulary {
    std::span<const Word> words;
    std::span<const Feature> features{};
    void (*complete)(Plan& plan) = nullptr;  // after all words: checks values, fills in what was left open. InputError
};

/// Of all axes, then of all methods.
std::span<const Vocabulary* const> vocabularies();

/// The words of `text`, before anything is checked or filled in.
Plan read_plan(std::string_view text);

inline constexpr std::int64_t unknown_servers = -1;  // Servers::count: `server` without a number

// What several words are read by.
inline bool has_axis(const Plan& plan, std::string_view name) { return axis_index(plan.mesh, name) >= 0; }
void add_axis(Plan& plan, const char* name, std::string_view size);
/// on or off.
bool read_switch(std::string_view name, std::string_view value);
/// Whether `value` is the second of two; InputError names both where it is neither.
bool read_choice(std::string_view name, std::string_view value, std::string_view first, std::string_view second);
inline constexpr int most_micro_batches = 1'000'000;
/// From 1 to `most`.
int read_count(std::string_view name, std::string_view value, int most);
/// "3+1", "8x2+1": 3 and 1; eight times 2 and 1. Each from 1 to most_micro_batches.
std::vector<std::int64_t> read_terms(std::string_view name, std::string_view value);
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
    "kept of them, 5 bytes a pair of tokens and head in 16 bits (programs before 2022); default as the software in "
    "force";

}  // namespace rehearse::schedule
