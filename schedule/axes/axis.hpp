// SPDX-License-Identifier: Apache-2.0
// An axis of a plan, or what an option lets the ranks along one share: its words, and what a rank then computes.
#pragma once

#include <optional>
#include <span>

#include "schedule/plan_words.hpp"

namespace rehearse::schedule {

struct PlanAxis {
    Vocabulary vocabulary;
    /// What a rank computes of the network, of which other axes may have left a rank's part; nothing where the plan
    /// does not ask for it. May add joined axes to the mesh. Null for axes that leave layers as they are. InputError
    /// when the network cannot be cut so.
    std::optional<Part> (*cut)(const Network& network, const Plan& plan, Mesh& mesh) = nullptr;
    /// Whether it cuts what other axes have left: it takes any layer; they look for those of the whole network.
    bool cuts_last = false;
};

/// The table, in axes/table.cpp.
std::span<const PlanAxis* const> axes();

extern const PlanAxis data, pipe;

// Words that several axes have.
constexpr Word micro_batches_of(std::string_view axis) {
    return {{"microbatches", "N", "the batch in N parts, gradients added up; default 1", axis}, read_micro_batches};
}
constexpr Word recompute_of(std::string_view axis) {
    return {{"recompute", "on|off|blocks|attention", recompute_text, axis}, read_recompute};
}
constexpr Word attention_of(std::string_view axis) {
    return {{"attention", "fused|kept", attention_text, axis}, read_attention};
}

}  // namespace rehearse::schedule
