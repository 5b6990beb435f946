// SPDX-License-Identifier: Apache-2.0
#include "gui/timeline_tables.hpp"

namespace rehearse::gui {

namespace {

constexpr std::size_t most_by_step = 3'000'000;  // events that are counted by name; more take longer than a frame may

// How much later it could have ended: by what the steps wait for, else by what begins next on its rank.
const char* slack_name(const picture::Slack* slack) { return slack != nullptr ? "slack" : "free slack"; }
Value slack_of(const picture::Lanes& lanes, const picture::Slack* slack, picture::EventAt at) {
    return seconds(static_cast<double>(slack != nullptr ? slack->of(at) : free_slack(lanes, at)) * 1e-9);
}

}  // namespace

Rows details_of(const picture::Lanes& lanes, const picture::Slack* slack, picture::EventAt at) {
    const picture::Lane& lane = lanes.lanes[at.lane];
    const picture::What& what = lanes.whats[lane.what(at.event)];
    const double start = static_cast<double>(lane.start(at.event)) * 1e-9;
    const double length = static_cast<double>(lane.end(at.event) - lane.start(at.event)) * 1e-9;
    Rows rows{{"property", "value"}, {}};
    const auto add = [&](const char* name, Value value) { rows.rows.push_back({{name, {}}, std::move(value)}); };
    add("step", {what.step, {}});
    add("activity", {std::string{to_string(what.activity)}, {}});
    add("on", {name_of_rank(lanes, lane.rank) + ", " + name_of_lane(lane), {}});
    add("start", seconds(start));
    add("duration", seconds(length));
    add(slack_name(slack), slack_of(lanes, slack, at));
    if (!what.layer.empty()) add("layer", {what.layer, {}});
    if (!what.pass.empty()) add("pass or category", {what.pass, {}});
    add("micro-batch", count(what.micro_batch));
    add("iteration", count(lane.iteration(at.event)));
    if (what.bytes > 0) add("bytes", bytes(what.bytes));
    if (what.bytes > 0 && length > 0) add("bandwidth", rate(what.bytes / length, "B/s"));
    if (what.flops > 0) add("work", {to_string(Flops{what.flops}), what.flops});
    if (what.flops > 0 && length > 0) add("rate", rate(what.flops / length, "FLOP/s"));
    return rows;
}

Rows area_of(const picture::Lanes& lanes, const TimelineView::Area& area, picture::Theme theme) {
    const auto from = static_cast<std::int64_t>(area.from), to = static_cast<std::int64_t>(area.to);
    const picture::Statistics s = statistics(lanes, area.lanes, from, to);
    Rows rows{{"what", "total", "share of the area", "count", "mean", "shortest", "longest"}, {}};
    for (std::size_t a = 0; a < picture::activity_count; ++a) {
        if (s.busy[a] == 0) continue;
        const auto activity = static_cast<picture::Activity>(a);
        rows.rows.push_back({{std::string{to_string(activity)}, {}, color_of(activity, theme)},
                             seconds(static_cast<double>(s.busy[a]) * 1e-9),
                             percent(static_cast<double>(s.busy[a]) / static_cast<double>(s.span))});
    }
    if (s.events > most_by_step) return rows;
    for (const auto& row : statistics_by_step(lanes, area.lanes, from, to)) {
        const double total = static_cast<double>(row.total) * 1e-9, n = static_cast<double>(row.count);
        rows.rows.push_back({{row.step, {}},
                             seconds(total),
                             percent(static_cast<double>(row.total) / static_cast<double>(s.span)),
                             count(n),
                             seconds(total / n),
                             seconds(static_cast<double>(row.shortest) * 1e-9),
                             seconds(static_cast<double>(row.longest) * 1e-9)});
    }
    return rows;
}

Rows path_rows(const picture::Lanes& lanes, const picture::Slack* slack, const std::vector<picture::PathStep>& path) {
    Rows rows{{"step", "rank", "lane", "start", "duration", "waited before", slack_name(slack), "activity"}, {}};
    for (const picture::PathStep& step : path) {
        if (rows.rows.size() >= 20'000) break;
        const picture::Lane& lane = lanes.lanes[step.at.lane];
        const picture::What& what = lanes.whats[lane.what(step.at.event)];
        rows.rows.push_back({{what.step, {}},
                             count(static_cast<double>(lane.rank)),
                             {name_of_lane(lane), {}},
                             seconds(static_cast<double>(lane.start(step.at.event)) * 1e-9),
                             seconds(static_cast<double>(lane.end(step.at.event) - lane.start(step.at.event)) * 1e-9),
                             seconds(static_cast<double>(step.waited) * 1e-9),
                             slack_of(lanes, slack, step.at),
                             {std::string{to_string(what.activity)}, {}}});
    }
    return rows;
}

}  // namespace rehearse::gui
