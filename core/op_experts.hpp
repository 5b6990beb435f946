// SPDX-License-Identifier: Apache-2.0
// Operators of mixtures of experts. Included by op.hpp, which says what an operator is.
#pragma once

#include <cstdint>

namespace rehearse {

/// Which expert gets which token (Lepikhin et al. 2021, algorithm 1; top = 1: Fedus et al. 2022, section 2). Each row
/// of `scores` {tokens, experts} chooses its `top` largest (of equal ones the first). Tokens of `group` samples in a
/// row compete: an expert takes the first `capacity` that chose it, first choices before second ones; for others it
/// does nothing. So routing depends on these samples alone, and not on how many ranks there are. A place of an expert
/// is a slot; `slots` of one sample are experts * capacity / group. A choice weighs its softmax probability; with top
/// above 1, over the sum of the chosen.
struct Routing {
    std::int64_t tokens = 1, width = 1, experts = 1;
    std::int64_t top = 1, capacity = 1, group = 1;
    constexpr std::int64_t slots() const { return experts * capacity / group; }
    bool operator==(const Routing&) const = default;
};

/// Tokens to their slots. Inputs tokens {tokens, width} and scores; output {slots, width}, of a group {experts,
/// capacity, width}, zero where nobody came. Scores get no gradient here: a choice has no slope.
struct DispatchTokens {
    Routing routing;
    bool operator==(const DispatchTokens&) const = default;
};

/// What experts made of tokens, back. Inputs {slots, width} and scores; output {tokens, width}: of each token the sum
/// over its choices that found a slot of what lies there, times their weights; zero for a token without.
struct CombineTokens {
    Routing routing;
    bool operator==(const CombineTokens&) const = default;
};

/// A dense layer of each expert: of a group, `sources` x {experts, rows, n} = {experts, rows, k} x weights {experts, k,
/// n} (+ bias {experts, n}). `sources` is 1, or the ranks whose slots lie here one after the other. Shape of one
/// sample: {sources * experts * rows / group, k}.
struct GroupedMatMul {
    std::int64_t experts = 1, rows = 1, n = 1, k = 1;
    std::int64_t sources = 1, group = 1;
    bool bias = true;
    bool operator==(const GroupedMatMul&) const = default;
};

}  // namespace rehearse
