// SPDX-License-Identifier: Apache-2.0
// A timeline as marks: what a window shows of it, for paper.
#pragma once

#include "picture/chart.hpp"
#include "picture/raster.hpp"

namespace rehearse::picture {

struct PictureRow {
    std::vector<RankLanes> ranks;
    std::string name;
    bool is_lane() const { return ranks.size() == 1 && ranks[0].size() == 1; }
};

struct TimelineView {
    std::optional<TimeView> time;  // empty: all
    std::vector<PictureRow> rows;  // empty: all lanes, in groups where they are more than `most_rows`
    Coloring coloring = Coloring::activity;
    std::size_t most_rows = 256;
};

Picture timeline_picture(const Lanes& lanes, const TimelineView& view = {}, double width = 1200,
                         Theme theme = Theme::light);

/// "0", "12.5 ms": a time axis with the unit that its step needs.
void draw_time_axis(Picture& picture, Box plot, TimeView view, const Palette& colors);

}  // namespace rehearse::picture
