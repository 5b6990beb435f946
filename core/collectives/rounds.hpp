// SPDX-License-Identifier: Apache-2.0
// Rounds as values that can be put one after the other, beside each other, and on other ranks: what core's collective
// algorithms are made of.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "core/collectives/collective.hpp"

namespace rehearse {

/// Receives the transfers of one round. Empty ones may be among them.
using Sink = std::function<void(const Transfer&)>;
using RankMap = std::function<std::int64_t(std::int64_t)>;

struct Rounds {
    std::vector<Phase> phases;  // cover all rounds
    std::function<void(std::int64_t round, const Sink& add)> transfers;
    std::int64_t count() const { return phases.empty() ? 0 : phases.back().first_round + phases.back().repeats; }
};

/// `count` rounds that are alike, or that differ from each other.
Rounds alike(std::int64_t count, std::function<void(std::int64_t, const Sink&)> transfers);
Rounds apart(std::int64_t count, std::function<void(std::int64_t, const Sink&)> transfers);

Rounds in_sequence(std::vector<Rounds> parts);
/// Round i of the whole is round i of every part.
Rounds side_by_side(std::vector<Rounds> parts);
/// Transfers in the order of who sends to whom, so that what goes from one rank to another stands together.
Rounds joined(Rounds one);
/// The same on `count` sets of ranks at once: rank r of copy c is rank_of(c, r).
Rounds copies(Rounds one, std::int64_t count, std::function<std::int64_t(std::int64_t, std::int64_t)> rank_of);
Rounds renamed(Rounds one, RankMap rank_of);

/// The `index`-th (modulo n) of n parts that differ by one element at most.
Range chunk(std::int64_t n, Range whole, std::int64_t index);

std::int64_t log2_floor(std::int64_t n);
std::int64_t log2_ceil(std::int64_t n);

/// Ranks beyond a power of two hand their data to a neighbour first and get the result back last (Thakur et al. 2005).
/// The first 2 * surplus ranks are pairs (even gives, odd plays); players are renumbered 0 .. power - 1.
struct Folding {
    explicit Folding(std::int64_t n) : ranks(n), power(std::int64_t{1} << log2_floor(n)), surplus(n - power) {}
    std::int64_t rank_of(std::int64_t player) const { return player < surplus ? 2 * player + 1 : player + surplus; }
    /// Of a player and, where it plays for two, its neighbour; first_rank(power) is the number of ranks.
    std::int64_t first_rank(std::int64_t player) const { return player < surplus ? 2 * player : player + surplus; }
    bool plays(std::int64_t rank) const { return rank >= 2 * surplus || rank % 2 == 1; }
    std::int64_t player_of(std::int64_t rank) const { return rank < 2 * surplus ? rank / 2 : rank - surplus; }
    /// One round: every surplus rank's `whole` to its player, or back.
    Rounds fold(Range whole, Combine combine) const;
    Rounds unfold(Range whole) const;

    std::int64_t ranks, power, surplus;
};

}  // namespace rehearse
