// SPDX-License-Identifier: Apache-2.0
// Context parallelism: ranks share the rows of each sequence (Jacobs et al. 2023, "DeepSpeed Ulysses").
#pragma once

#include <cstdint>
#include <string>

#include "core/schedule.hpp"

namespace rehearse::schedule {

struct ContextAxis {
    std::string name;  // of the mesh
    int index = 0;
    std::int64_t parts = 1;
    bool ring = false;  // keys and values travel (core/ring_attention.hpp), not rows and heads
    int pieces = -1;    // this axis and tensor's behind it, where each of its ranks has a piece of a rank's rows
};

/// What each rank along `axis` computes: its rows (tokens) of every sequence, as many as the others, one block after
/// the other in the order of the ranks, by a ring every so many-th row. The weights are whole on each, their gradients
/// a sum over the axis (Origin::summed). Walks the network once and keeps for each output whether ranks have their rows
/// of it or all:
/// - dense layers, normalizations, element-wise functions, dropout and the loss of a row work on the rank's rows;
/// - a table of words is looked up for the rank's rows, and a table of positions that has one for each token lies in
///   pieces on the ranks, each of which has its rows' (Origin::cuts);
/// - attention needs all rows: an all-to-all gives each rank all rows of its share of the heads, another one brings the
///   result's rows back (section 3.1 there), so that a causal mask leaves all ranks as much to do. Heads of keys and
///   values that are no multiple of the ranks are copied before. By a ring a rank's attention is of its own rows alone,
///   and of the keys and values that come by turns: it needs no heads, and as many queries as keys where it is causal.
/// - with sequence parallelism (`pieces`) what lies between layers that are cut is cut once more: each tensor rank has
///   a block of a rank's block.
/// What needs a whole sequence otherwise gathers it, and all ranks compute the same until each takes its rows again;
/// where that is much, the part has a note. InputError when no attention has heads, or no sequence rows, that the ranks
/// can share evenly, with the reason.
Part split_context(const Network& network, const ContextAxis& axis);

}  // namespace rehearse::schedule
