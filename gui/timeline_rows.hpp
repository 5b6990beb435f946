// SPDX-License-Identifier: Apache-2.0
// Which rank or lane stands in which row: all ranks at once as a heat map, each as thin as it must be, and the lanes of
// those that are opened below them. No Qt here.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "picture/raster.hpp"

namespace rehearse::gui {

struct TimelineRow {
    std::vector<picture::RankLanes> ranks;  // of a lane's row: one rank with one lane
    std::vector<std::size_t> lanes;         // indices of all of them
    std::string name;
    double y = 0, height = 1;
    bool is_lane = false, is_open = false, is_pinned = false;
    bool is_child = false;  // a lane below its rank
    std::int64_t rank = 0;  // the first
};

struct RowChoice {
    std::set<std::int64_t> open, pinned;  // ranks
    double zoom = 1;                      // of the rows' height
    std::string filter;                   // only ranks and lanes whose name has it
};

/// From y = 0 downwards; pinned ranks first. `room`: pixels that all ranks would like to share.
std::vector<TimelineRow> lay_out(const picture::Lanes& lanes, const RowChoice& choice, double room);

/// All ranks when there are few, none otherwise.
std::set<std::int64_t> open_at_first(const picture::Lanes& lanes);

std::string name_of_rank(const picture::Lanes& lanes, std::int64_t rank);
std::string name_of_lane(const picture::Lane& lane);

}  // namespace rehearse::gui
