// SPDX-License-Identifier: Apache-2.0
// Attention whose keys and values travel around a ring of ranks (Liu et al. 2023, "Ring Attention"), each of which has
// rows r, r + n, r + 2n, ... of a sequence (Brandon et al. 2023, "Striped Attention"), so that a causal mask leaves all
// ranks as much to do.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "core/schedule.hpp"

namespace rehearse {

/// Of a plan and its schedule.
struct RingAttention {
    bool on = false;
};

/// Ranks around which the keys and values of a layer of a part travel; 1 where it is no attention or has all of them.
std::int64_t ring_of(const Schedule& schedule, const Part& part, int layer);

/// What a rank does for one such layer, in this order: `attend`, turn t: by the keys and values of the rank t before
/// it; `keys`, turn t: those are handed on to it from its neighbour, beside the turn before; `gradients`, turn t
/// (backward): to the next rank, what the first t ranks have given to the gradients of keys and values; after the last
/// one they are where these are at home.
struct RingTurn {
    enum class What { attend, keys, gradients } what = What::attend;
    int turn = 0;
};
std::vector<RingTurn> ring_turns(Pass pass, std::int64_t ranks);

/// Elements of a block of keys and values, of one sample.
std::int64_t ring_block(const Attention& op);

/// Algorithms of a hand-over, a CollectiveKind::halo of two blocks: each rank's first block becomes the next one's
/// second, or its second the next one's first.
inline constexpr std::string_view shift_first = "shift", shift_second = "shift-second";

/// "shift" of a hand-over around a ring, else as pass_of(kind).
std::string_view pass_of(const Communicate& communicate);

}  // namespace rehearse
