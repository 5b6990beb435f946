// SPDX-License-Identifier: Apache-2.0
// How the time of a cell (a pixel, or a bin of the pyramid) is spent: eight shares of 1/255, one an activity, side by
// side in one number, so that all are added, halved and compared at once. At most 255 in all.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <span>

#include "picture/lanes.hpp"

namespace rehearse::picture {

static_assert(std::endian::native == std::endian::little, "activity a is byte a of a Coverage");
using Shares = std::uint64_t;
inline Shares shares_of(const Coverage& coverage) { return std::bit_cast<Shares>(coverage); }
inline Coverage coverage_of(Shares shares) { return std::bit_cast<Coverage>(shares); }

/// The share that is not idle.
inline unsigned sum_of(Shares shares) {
    constexpr Shares even = 0x00FF00FF00FF00FFULL;
    const Shares pairs = (shares & even) + ((shares >> 8U) & even);
    return std::min(static_cast<unsigned>((pairs * 0x0001000100010001ULL) >> 48U), 255U);
}

/// Of two cells that become one, rounded up: what is there at all stays seen.
inline Shares mean(Shares a, Shares b) { return (a | b) - (((a ^ b) >> 1U) & 0x7F7F7F7F7F7F7F7FULL); }

/// Adds what the lane does from `from` (ns) on to cells of `per_cell` ns each, at least one. An event however short has
/// a share, as long as there is room: what comes first hides what comes later, as computing hides the communication
/// behind it.
void add_events(const Lane& lane, double from, double per_cell, std::span<Shares> cells);

}  // namespace rehearse::picture
