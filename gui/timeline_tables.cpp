// SPDX-License-Identifier: Apache-2.0
#include "gui/timeline_tables.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "core/text.hpp"
#include "picture/ticks.hpp"

namespace rehearse::gui {

namespace {

constexpr std::size_t most_by_step = 3'000'000;  // events that are counted by name; more take longer than a frame may

// How much later it could have ended: by what the steps wait for, else by what begins next on its rank.
const char* slack_name(const picture::Slack* slack) { return slack != nullptr ? "slack" : "free slack"; }
Value slack_of(const picture::Lanes& lanes, const picture::Slack* slack, picture::EventAt at) {
    return seconds(static_cast<double>(slack != nullptr ? slack->of(at) : free_slack(lanes, at)) * 1e-9);
}

// To the nanosecond, as the files have it: "1.234567 ms".
Value exact(std::int64_t ns) {
    const double time = static_cast<double>(ns) * 1e-9;
    std::string text = picture::text_of_time(time, 1e-9);
    const std::size_t unit = text.find(' ');
    if (text.find('.') < unit) {
        const std::size_t last = text.find_last_not_of('0', unit - 1);
        text.erase(last + (text[last] == '.' ? 0 : 1), unit - last - (text[last] == '.' ? 0 : 1));
    }
    return {text, time};
}

}  // namespace

Rows details_of(const picture::Lanes& lanes, const picture::Slack* slack, picture::EventAt at) {
    const picture::Lane& lane = lanes.lanes[at.lane];
    const picture::What& what = lanes.whats[lane.what(at.event)];
    const double length = static_cast<double>(lane.end(at.event) - lane.start(at.event)) * 1e-9;
    Rows rows{{"property", "value"}, {}};
    const auto add = [&](const char* name, Value value) { rows.rows.push_back({{name, {}}, std::move(value)}); };
    add("step", {what.step, {}});
    add("activity", {std::string{to_string(what.activity)}, {}});
    add("on", {name_of_rank(lanes, lane.rank) + ", " + name_of_lane(lane), {}});
    add("start", exact(lane.start(at.event)));
    add("duration", exact(lane.end(at.event) - lane.start(at.event)));
    add(slack_name(slack), slack_of(lanes, slack, at));
    if (!what.layer.empty()) add("layer", {what.layer, {}});
    if (!what.pass.empty()) add("pass or category", {what.pass, {}});
    add("micro-batch", count(what.micro_batch));
    add("iteration", count(lane.iteration(at.event)));
    if (what.bytes > 0) add("bytes", bytes(what.bytes));
    if (what.bytes > 0 && length > 0) add("bandwidth", rate(what.bytes / length, "B/s"));
    if (what.flops > 0) add("work", {to_string(Flops{what.flops}), what.flops});
    if (what.flops > 0 && length > 0) add("rate", rate(what.flops / length, "FLOP/s"));
    if (const auto arguments = lane.arguments(at.event)) {
        for (const std::string_view line : split(lanes.arguments[*arguments], '\n')) {
            const std::size_t colon = std::min(line.find(": "), line.size());
            const std::string_view value = line.substr(std::min(colon + 2, line.size()));
            rows.rows.push_back({{std::string{line.substr(0, colon)}, {}}, {std::string{value}, {}}});
        }
    }
    return rows;
}

Rows area_of(const picture::Lanes& lanes, const TimelineView::Area& area, picture::Theme theme) {
    const auto from = static_cast<std::int64_t>(area.from), to = static_cast<std::int64_t>(area.to);
    const picture::Statistics s = statistics(lanes, area.lanes, from, to);
    Rows rows{{"what", "total", "share of the area", "count", "mean", "shortest", "longest"}, {}};
    const auto steps = s.events <= most_by_step ? statistics_by_step(lanes, area.lanes, from, to)
                                                : std::vector<picture::NamedStatistics>{};
    const auto share = [&](std::int64_t ns) { return percent(static_cast<double>(ns) / static_cast<double>(s.span)); };
    const auto time = [](std::int64_t ns) { return seconds(static_cast<double>(ns) * 1e-9); };
    const auto add = [&](Value name, std::int64_t total, const picture::NamedStatistics& of) {
        auto& row = rows.rows.emplace_back();
        row = {std::move(name), time(total), share(total)};
        if (of.count == 0) return;
        const double n = static_cast<double>(of.count);
        row.insert(row.end(),
                   {count(n), seconds(static_cast<double>(of.total) * 1e-9 / n), time(of.shortest), time(of.longest)});
    };
    for (std::size_t a = 0; a < picture::activity_count; ++a) {
        if (s.busy[a] == 0) continue;
        const auto activity = static_cast<picture::Activity>(a);
        picture::NamedStatistics all{"", activity, 0, 0, INT64_MAX, 0, 0};
        for (const auto& each : steps) {
            if (each.activity != activity) continue;
            all.count += each.count, all.total += each.total;
            all.shortest = std::min(all.shortest, each.shortest), all.longest = std::max(all.longest, each.longest);
        }
        add({std::string{to_string(activity)}, {}, color_of(activity, theme)}, s.busy[a], all);
    }
    std::map<std::string_view, int> rows_of;  // one name may be of a call and of its kernel
    for (const auto& each : steps) ++rows_of[each.step];
    for (const auto& each : steps) {
        const bool alone = rows_of[each.step] == 1;
        add({alone ? each.step : fmt::format("{} ({})", each.step, to_string(each.activity)), {}}, each.inside, each);
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
                             exact(lane.start(step.at.event)),
                             seconds(static_cast<double>(lane.end(step.at.event) - lane.start(step.at.event)) * 1e-9),
                             seconds(static_cast<double>(step.waited) * 1e-9),
                             slack_of(lanes, slack, step.at),
                             {std::string{to_string(what.activity)}, {}}});
    }
    return rows;
}

}  // namespace rehearse::gui
