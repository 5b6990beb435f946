// SPDX-License-Identifier: Apache-2.0
#include "picture/shares.hpp"

#include <cmath>
#include <utility>
#include <vector>

namespace rehearse::picture {

namespace {

// Of `more`, as much as there is room for beside `have`.
Shares beside(Shares have, Shares more) {
    unsigned room = 255 - sum_of(have);
    if (sum_of(more) <= room) return have + more;
    if (room == 0) return have;
    for (unsigned at = 0; at < 64; at += 8) {
        const unsigned part = std::min(static_cast<unsigned>(more >> at) & 255U, room);
        have += static_cast<Shares>(part) << at;
        room -= part;
    }
    return have;
}

// Times to places on a row of cells, in 1/256 of a cell.
class Places {
public:
    Places(double from, double per_cell, std::size_t cells)
        : base_(static_cast<std::int64_t>(std::floor(from))),
          scale_(256 / per_cell),
          offset_((from - std::floor(from)) * scale_),
          end_(static_cast<double>(cells * 256)) {}

    std::int64_t base() const { return base_; }
    // Relative to `base`: times since 1970 have no more digits in a double.
    std::int64_t of(std::int64_t ns) const {
        return static_cast<std::int64_t>(
            std::min(std::max(static_cast<double>(ns - base_) * scale_ - offset_, 0.0), end_));
    }

private:
    std::int64_t base_;
    double scale_, offset_, end_;
};

}  // namespace

// An event from place a to place b raises the share of all cells from a on and lowers it again from b on, each in two
// steps where the place is inside of a cell: 255 - f at once and f at the next cell, of f/256. So an event costs the
// same however many cells it passes through, without a branch, and one sum over the cells makes shares of the steps.
// Steps of several activities share a number: carries between its bytes are gone when the sum is complete.
void add_events(const Lane& lane, double from, double per_cell, std::span<Shares> cells) {
    thread_local std::vector<Shares> kept;  // all 0 between calls
    if (kept.size() < cells.size() + 2) kept.resize(cells.size() + 2, 0);
    Shares* const steps = kept.data();
    const Places places(from, per_cell, cells.size());
    const auto rise = [steps](std::int64_t place, Shares one) {
        const auto inside = static_cast<Shares>(place & 255);
        Shares* const at = steps + (place >> 8);
        at[0] += (255 - inside) * one;
        at[1] += inside * one;
    };
    const double until = from + per_cell * static_cast<double>(cells.size());
    std::int64_t free_from = 0;
    for (std::size_t i = lane.first_after(places.base()); i < lane.size(); ++i) {
        if (static_cast<double>(lane.start(i)) >= until) break;
        // A short event has a share, but none of the next cell, and none of the time of the event before it.
        const std::int64_t own = places.of(lane.start(i)), next_cell = (own | 255) + 1;
        const std::int64_t left = std::max(std::min(own, next_cell - 2), free_from);
        const std::int64_t least = std::max(std::min(left + 2, next_cell), left);
        const std::int64_t right = std::max(places.of(lane.end(i)), least);
        const Shares one = Shares{1} << (8 * static_cast<unsigned>(lane.activity(i)));
        rise(left, one);
        rise(right, 0 - one);
        free_from = right;
    }
    Shares sum = 0;
    for (std::size_t c = 0; c < cells.size(); ++c) {
        sum += std::exchange(steps[c], 0);
        if (sum != 0) cells[c] = cells[c] == 0 ? sum : beside(cells[c], sum);
    }
    steps[cells.size()] = steps[cells.size() + 1] = 0;
}

}  // namespace rehearse::picture
