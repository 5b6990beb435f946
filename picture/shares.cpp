// SPDX-License-Identifier: Apache-2.0
#include "picture/shares.hpp"

#include <cmath>

namespace rehearse::picture {

// Places are counted in 1/256 of a cell, so that the shares of events that follow each other add up whatever their
// length.
void add_events(const Lane& lane, double from, double per_cell, std::span<Shares> cells) {
    const auto end = static_cast<double>(cells.size() * 256);
    const double scale = 256 / per_cell;
    const auto base = static_cast<std::int64_t>(std::floor(from));  // times since 1970 have no more digits in a double
    const double fraction = from - std::floor(from);
    const auto place = [&](std::int64_t ns) {
        return static_cast<std::int64_t>(std::clamp((static_cast<double>(ns - base) - fraction) * scale, 0.0, end));
    };
    const double until = from + per_cell * static_cast<double>(cells.size());
    const auto last_place = static_cast<std::int64_t>(end) - 1;
    for (std::size_t i = lane.first_after(base); i < lane.size(); ++i) {
        if (static_cast<double>(lane.start(i)) >= until) break;
        const std::int64_t left = std::min(place(lane.start(i)), last_place);
        const std::int64_t right = std::max(place(lane.end(i)), left + 1);
        const auto activity = static_cast<unsigned>(lane.activity(i));
        const auto first = static_cast<std::size_t>(left >> 8), last = static_cast<std::size_t>((right - 1) >> 8);
        if (first == last) {
            cells[first] = with(cells[first], activity, static_cast<unsigned>(right - left));
            continue;
        }
        cells[first] = with(cells[first], activity, 256 - static_cast<unsigned>(left & 255));
        const Shares whole = Shares{255} << (8 * activity);
        for (std::size_t c = first + 1; c < last; ++c) cells[c] = cells[c] == 0 ? whole : with(cells[c], activity, 255);
        cells[last] =
            with(cells[last], activity, static_cast<unsigned>(right - (static_cast<std::int64_t>(last) << 8)));
    }
}

}  // namespace rehearse::picture
