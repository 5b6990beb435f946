// SPDX-License-Identifier: Apache-2.0
#include "gui/timeline_rows.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace rehearse::gui {

namespace {

constexpr double lane_height = 20, rank_height = 18, gap = 5;

struct Rank {
    std::int64_t number = 0;
    std::vector<std::size_t> lanes;
};

bool matches(const picture::Lanes& lanes, const Rank& rank, const std::string& filter) {
    if (filter.empty() || name_of_rank(lanes, rank.number).find(filter) != std::string::npos) return true;
    return std::ranges::any_of(rank.lanes,
                               [&](std::size_t l) { return lanes.lanes[l].name.find(filter) != std::string::npos; });
}

std::vector<Rank> ranks_of(const picture::Lanes& lanes, const RowChoice& choice) {
    std::vector<Rank> ranks;
    for (std::size_t l = 0; l < lanes.lanes.size(); ++l) {
        if (ranks.empty() || ranks.back().number != lanes.lanes[l].rank) ranks.push_back({lanes.lanes[l].rank, {}});
        ranks.back().lanes.push_back(l);
    }
    std::erase_if(ranks, [&](const Rank& rank) { return !matches(lanes, rank, choice.filter); });
    std::ranges::stable_partition(ranks, [&](const Rank& rank) { return choice.pinned.contains(rank.number); });
    return ranks;
}

TimelineRow row_of(const picture::Lanes& lanes, std::span<const Rank> ranks) {
    TimelineRow row;
    row.rank = ranks.front().number;
    for (const Rank& rank : ranks) {
        picture::RankLanes& of_rank = row.ranks.emplace_back();
        for (const std::size_t l : rank.lanes) {
            of_rank.push_back(&lanes.lanes[l]);
            row.lanes.push_back(l);
        }
    }
    row.name = name_of_rank(lanes, row.rank);
    if (ranks.size() > 1) row.name = fmt::format("ranks {}–{}", row.rank, ranks.back().number);
    return row;
}

}  // namespace

std::string name_of_rank(const picture::Lanes& lanes, std::int64_t rank) {
    const auto found = lanes.rank_names.find(rank);
    return found != lanes.rank_names.end() ? found->second : fmt::format("rank {}", rank);
}

std::string name_of_lane(const picture::Lane& lane) {
    std::string name = lane.name;
    std::ranges::replace(name, '_', ' ');
    return lane.number > 0 ? fmt::format("{} {}", name, lane.number + 1) : name;
}

std::set<std::int64_t> open_at_first(const picture::Lanes& lanes) {
    std::set<std::int64_t> ranks;
    for (const picture::Lane& lane : lanes.lanes) ranks.insert(lane.rank);
    return lanes.lanes.size() <= 24 ? ranks : std::set<std::int64_t>{};
}

std::vector<TimelineRow> lay_out(const picture::Lanes& lanes, const RowChoice& choice, double room) {
    const std::vector<Rank> ranks = ranks_of(lanes, choice);
    std::vector<TimelineRow> rows;
    if (ranks.empty()) return rows;
    const double share = room / static_cast<double>(ranks.size()) * choice.zoom;
    const double height = std::clamp(std::floor(share), 1.0, std::max(2 * rank_height * choice.zoom, 2.0));
    const auto group = static_cast<std::size_t>(std::max(1.0, std::ceil(1 / std::max(share, 1e-6))));
    double y = 0;
    for (std::size_t i = 0; i < ranks.size();) {
        const bool special = choice.open.contains(ranks[i].number) || choice.pinned.contains(ranks[i].number);
        std::size_t end = i + 1;
        while (!special && end < ranks.size() && end - i < group && !choice.open.contains(ranks[end].number)) ++end;
        TimelineRow& row = rows.emplace_back(row_of(lanes, std::span(ranks).subspan(i, end - i)));
        row.is_open = choice.open.contains(row.rank) && end == i + 1;
        row.is_pinned = choice.pinned.contains(row.rank);
        row.y = y;
        row.height = row.is_open || special ? rank_height : height;
        row.is_lane = row.lanes.size() == 1 && row.height >= 12;
        const std::vector<std::size_t> of_row = row.lanes;
        const bool open = row.is_open && of_row.size() > 1;
        if (row.is_open && !open) row.height = lane_height;
        y += row.height;
        for (std::size_t l = 0; open && l < of_row.size(); ++l) {
            TimelineRow& lane = rows.emplace_back();
            lane.ranks = {{&lanes.lanes[of_row[l]]}};
            lane.lanes = {of_row[l]};
            lane.name = name_of_lane(lanes.lanes[of_row[l]]);
            lane.rank = lanes.lanes[of_row[l]].rank;
            lane.is_lane = lane.is_child = true;
            lane.y = y;
            lane.height = lane_height;
            y += lane_height;
        }
        if (open) y += gap;
        i = end;
    }
    return rows;
}

}  // namespace rehearse::gui
