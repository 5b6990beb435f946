// SPDX-License-Identifier: Apache-2.0
// A sweep cut into strips of output rows that stay in the cache from when they are summed until they are stored.
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/cpu/conv/direct_simd.hpp"

namespace rehearse::kernels::cpu {

struct RowStrip {
    std::size_t grid;
    std::int64_t first, rows;
};

/// Strips of at most `floats` in panels of `panel` channels, or of one row.
std::vector<RowStrip> cut_into_strips(const Sweep& sweep, std::int64_t panel, std::int64_t floats);
std::int64_t most_pixels(const Sweep& sweep, const std::vector<RowStrip>& strips);

/// The taps of each grid, in floats.
std::vector<std::vector<TapAt>> taps_of_grids(const Sweep& sweep, std::int64_t lanes, std::int64_t panel);

/// Where a summed strip {pixel, panel} goes: `channels` planes of an NCHW tensor.
struct StripStore {
    const DirectSimd& simd;
    const Sweep& sweep;
    std::int64_t channels, panel;
    float* out;
};

/// `turned` has room for the strip once more.
void store(const StripStore& to, const RowStrip& strip, const float* summed, float* turned);

}  // namespace rehearse::kernels::cpu
