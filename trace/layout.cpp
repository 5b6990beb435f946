// SPDX-License-Identifier: Apache-2.0
#include "trace/layout.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <numeric>
#include <queue>
#include <set>
#include <tuple>
#include <utility>

#include "core/error.hpp"

namespace rehearse::trace {

namespace {

constexpr double longest = 4e9;  // seconds, 127 years: sums of two times still fit into 64-bit nanoseconds

// Lanes of one (rank, stream): the lowest that is free takes the next event.
struct Lanes {
    std::vector<std::size_t> ids;  // of all lanes so far
    std::set<std::size_t> free;
    std::priority_queue<std::pair<std::int64_t, std::size_t>, std::vector<std::pair<std::int64_t, std::size_t>>,
                        std::greater<>>
        busy;  // (end, number)
};

std::size_t place(Lanes& lanes, std::int64_t start, std::int64_t end) {
    while (!lanes.busy.empty() && lanes.busy.top().first <= start) {
        lanes.free.insert(lanes.busy.top().second);
        lanes.busy.pop();
    }
    std::size_t number = lanes.ids.size();
    if (!lanes.free.empty()) number = lanes.free.extract(lanes.free.begin()).value();
    lanes.busy.push({end, number});
    return number;
}

// Lanes were numbered as they came up; renumbers them by (rank, stream, number).
void sort_lanes(Layout& layout) {
    std::vector<std::size_t> order(layout.lanes.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::ranges::sort(order, {}, [&](std::size_t i) {
        const Lane& lane = layout.lanes[i];
        return std::tuple{lane.rank, lane.stream, lane.number};
    });
    std::vector<std::size_t> place_of(order.size());
    std::vector<Lane> sorted;
    for (const std::size_t i : order) {
        place_of[i] = sorted.size();
        sorted.push_back(layout.lanes[i]);
        if (layout.ranks.empty() || layout.ranks.back() != sorted.back().rank)
            layout.ranks.push_back(sorted.back().rank);
    }
    for (std::size_t& lane : layout.lane_of) lane = place_of[lane];
    layout.lanes = std::move(sorted);
}

}  // namespace

std::int64_t to_ns(Seconds time) {
    require(std::abs(time.value) <= longest, "a time in a timeline is finite and less than 127 years");
    return std::llround(time.value * 1e9);
}

Seconds from_ns(std::int64_t ns) { return Seconds{static_cast<double>(ns) / 1e9}; }

std::optional<Seconds> from_file_ns(std::int64_t ns, std::int64_t shift) {
    constexpr auto limit = static_cast<std::int64_t>(longest * 1e9);
    if (shift < 0 || shift > limit || ns < 0 || ns > limit + shift) return std::nullopt;
    return from_ns(ns - shift);
}

std::int64_t shift_of(std::span<const Timeline> timelines) {
    std::int64_t earliest = 0;
    for (const Timeline& timeline : timelines) {
        for (const Event& event : timeline.events) earliest = std::min(earliest, to_ns(event.start));
        for (const Counter& counter : timeline.counters) {
            for (const auto& point : counter.points) earliest = std::min(earliest, to_ns(point.first));
        }
    }
    return -earliest;
}

std::vector<std::string> labels_of(std::span<const Timeline> timelines) {
    std::vector<std::string> labels;
    std::array<int, 2> count{};
    for (const Timeline& timeline : timelines) {
        const int number = ++count[timeline.measured ? 1U : 0U];
        const std::string_view kind = timeline.measured ? "measured" : "predicted";
        labels.push_back(number == 1 ? std::string{kind} : fmt::format("{} {}", kind, number));
    }
    return labels;
}

std::string process_name(const std::vector<std::string>& labels, std::size_t timeline, std::string_view what) {
    return labels.size() == 1 ? std::string{what} : fmt::format("{}: {}", labels[timeline], what);
}

Layout lay_out(const Timeline& timeline) {
    const std::vector<Event>& events = timeline.events;
    std::vector<std::int64_t> starts;
    starts.reserve(events.size());
    for (const Event& event : events) starts.push_back(to_ns(event.start));

    Layout layout;
    layout.order.resize(events.size());
    std::iota(layout.order.begin(), layout.order.end(), std::size_t{0});
    std::ranges::stable_sort(layout.order, {}, [&](std::size_t i) { return starts[i]; });

    std::map<std::pair<std::int64_t, Stream>, Lanes> streams;
    layout.lane_of.resize(events.size());
    for (const std::size_t i : layout.order) {
        const Event& event = events[i];
        require(event.end >= event.start, "an event ends after it starts");
        Lanes& lanes = streams[{event.rank, event.stream}];
        const std::size_t number = place(lanes, starts[i], to_ns(event.end));
        if (number == lanes.ids.size()) {
            lanes.ids.push_back(layout.lanes.size());
            layout.lanes.push_back({event.rank, event.stream, static_cast<int>(number)});
        }
        layout.lane_of[i] = lanes.ids[number];
    }
    sort_lanes(layout);
    return layout;
}

void sort_events(Timeline& timeline) {
    std::ranges::stable_sort(timeline.events, [](const Event& a, const Event& b) {
        return std::tie(a.iteration, a.rank, a.start.value) < std::tie(b.iteration, b.rank, b.start.value);
    });
}

}  // namespace rehearse::trace
