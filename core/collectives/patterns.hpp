// SPDX-License-Identifier: Apache-2.0
// Every algorithm of every collective, as a function from ranks and elements to rounds; core/collectives/collective.cpp
// names them.
#pragma once

#include <optional>
#include <span>
#include <string_view>

#include "core/collectives/rounds.hpp"

namespace rehearse {

/// What an algorithm needs to know.
struct Task {
    Algorithm algorithm;
    Group group;
    Range whole;
    std::int64_t root = 0;
    std::int64_t slot = 0;  // of an all-to-all: elements between blocks that a rank has received
};

struct Pattern {
    CollectiveKind kind = CollectiveKind::all_reduce;
    std::string_view name, summary;
    Rounds (*rounds)(const Task& task);
};
std::span<const Pattern> all_reduce_patterns();
std::span<const Pattern> half_patterns();  // reduce-scatter and all-gather
std::span<const Pattern> broadcast_patterns();
std::span<const Pattern> all_to_all_patterns();
std::span<const Pattern> halo_patterns();

/// An all-reduce over a group whose first half leaves the sum of `owned` at each rank, and whose other half, the mirror
/// image, spreads it.
struct Halves {
    Rounds reduce, spread;
    std::function<Range(std::int64_t rank)> owned;
};
/// nullopt where the algorithm has no such halves (doubling).
std::optional<Halves> halves_of(std::string_view name, const Group& group, Range whole);
/// Of an algorithm of its own, without parts in brackets.
Rounds flat_all_reduce(std::string_view name, const Group& group, Range whole);

// rings.cpp
Rounds ring_reduce(const Group& group, Range whole);
Rounds ring_spread(const Group& group, Range whole);
Rounds rings_reduce(const Group& group, Range whole);
Rounds rings_spread(const Group& group, Range whole);
Rounds rings(const Task& task);

// trees.cpp
Rounds binomial_reduce(std::int64_t n, Range whole);
Rounds binomial_spread(std::int64_t n, Range whole);
Rounds double_tree_all_reduce(const Task& task);
Rounds double_tree_broadcast(const Task& task);

// grids.cpp
Rounds hierarchical(const Task& task);
Rounds torus(const Task& task);

// adasum.cpp
Rounds adasum(const Task& task);
/// a.b, |a|^2, |b|^2: the last elements of a rank's memory.
inline constexpr std::int64_t adasum_products = 3;
/// Elements that it needs behind the data.
std::int64_t adasum_room(std::int64_t n, std::int64_t elements);

/// A pipeline of `stages` stages, each of which works in `count - stages + 1` rounds: all at once in the middle ones.
Rounds pipeline(std::int64_t count, std::int64_t stages, std::function<void(std::int64_t, const Sink&)> transfers);

}  // namespace rehearse
