// SPDX-License-Identifier: Apache-2.0
#include "picture/lanes.hpp"

#include <algorithm>
#include <cmath>
#include <string_view>
#include <utility>

namespace rehearse::picture {

namespace {

constexpr std::size_t stride = 64;  // of the prefix sums

}  // namespace

std::int64_t Lane::long_duration(std::size_t i) const { return long_.at(i); }

std::size_t Lane::first_after(std::int64_t ns) const {
    // The events do not overlap, so only the last that begins before can still go on.
    const auto after = std::ranges::upper_bound(starts_, ns);
    const auto i = static_cast<std::size_t>(after - starts_.begin());
    return i > 0 && end(i - 1) > ns ? i - 1 : i;
}

int Lane::iteration(std::size_t i) const {
    const auto after = std::ranges::upper_bound(iterations_, i, {}, &Run::first);
    return (after - 1)->iteration;
}

std::optional<std::size_t> Lane::at(std::int64_t ns) const {
    const std::size_t i = first_after(ns);
    if (i == size() || start(i) > ns) return std::nullopt;
    return i;
}

std::array<std::int64_t, activity_count> Lane::busy_before(std::size_t i) const {
    std::array<std::int64_t, activity_count> sum{};
    if (prefix_.empty()) return sum;
    const std::size_t block = std::min(i / stride, prefix_.size() - 1);
    sum = prefix_[block];
    for (std::size_t j = block * stride; j < i; ++j) sum[static_cast<std::size_t>(activities_[j])] += end(j) - start(j);
    return sum;
}

std::size_t Lane::memory_bytes() const {
    const auto bytes = [](const auto& v) { return v.capacity() * sizeof(v[0]); };
    std::size_t sum = sizeof(Lane) + bytes(starts_) + bytes(durations_) + bytes(whats_) + bytes(activities_) +
                      bytes(iterations_) + bytes(flows_) + bytes(arguments_) + bytes(prefix_) + long_.size() * 64;
    for (const auto& level : levels_) sum += bytes(level);
    return sum;
}

std::size_t Lanes::size() const {
    std::size_t sum = 0;
    for (const Lane& lane : lanes) sum += lane.size();
    return sum;
}

std::size_t Lanes::memory_bytes() const {
    std::size_t sum = 0;
    for (const Lane& lane : lanes) sum += lane.memory_bytes();
    for (const What& what : whats) {
        sum += sizeof(What) + what.step.capacity() + what.layer.capacity() + what.pass.capacity();
    }
    for (const std::string& lines : arguments) sum += sizeof(lines) + lines.capacity();
    for (const Counter& counter : counters) sum += counter.points.capacity() * sizeof(counter.points[0]);
    for (const auto& [rank, pyramid] : of_rank) {
        for (const auto& level : pyramid) sum += level.capacity() * sizeof(Coverage);
    }
    return sum;
}

const Pyramid& Lanes::levels_of(std::int64_t rank) const {
    static const Pyramid none;
    const auto found = of_rank.find(rank);
    return found == of_rank.end() ? none : found->second;
}

Lanes lanes_of(const Timeline& timeline) {
    const auto ns = [](Seconds time) { return static_cast<std::int64_t>(std::llround(time.value * 1e9)); };
    LanesBuilder builder(timeline.title, timeline.measured, timeline.ranks);
    for (const Event& event : timeline.events) {
        const std::uint32_t what = builder.what({event.step, event.layer, event.pass, event.micro_batch,
                                                 event.bytes.value, event.flops.value, activity_of(event)});
        const std::size_t lane = builder.lane(event.rank, event.stream, std::string{to_string(event.stream)});
        builder.add(lane, ns(event.start), ns(event.end) - ns(event.start), what, event.iteration, event.flow);
    }
    for (const Counter& counter : timeline.counters) builder.add(counter);
    for (const LinkUse& use : timeline.links) builder.add(use);
    return builder.finish();
}

Timeline timeline_of(const Lanes& lanes) {
    Timeline timeline{lanes.title, lanes.measured, lanes.ranks, {}, lanes.counters, lanes.links};
    struct Place {
        int iteration;
        std::int64_t rank, start;
        std::uint32_t lane, event;
        auto operator<=>(const Place&) const = default;
    };
    std::vector<Place> order;
    order.reserve(lanes.size());
    for (std::size_t l = 0; l < lanes.lanes.size(); ++l) {
        const Lane& lane = lanes.lanes[l];
        for (std::size_t i = 0; i < lane.size(); ++i)
            order.push_back({lane.iteration(i), lane.rank, lane.start(i), static_cast<std::uint32_t>(l),
                             static_cast<std::uint32_t>(i)});
    }
    std::ranges::sort(order);
    timeline.events.reserve(order.size());
    for (const Place& place : order) {
        const Lane& lane = lanes.lanes[place.lane];
        const What& what = lanes.whats[lane.what(place.event)];
        timeline.events.push_back({RankIndex{lane.rank}, lane.stream, what.step, what.layer, what.pass,
                                   what.micro_batch, place.iteration, Seconds{static_cast<double>(place.start) * 1e-9},
                                   Seconds{static_cast<double>(lane.end(place.event)) * 1e-9}, Bytes{what.bytes},
                                   Flops{what.flops}, lane.flow(place.event)});
    }
    return timeline;
}

Statistics statistics(const Lanes& lanes, std::span<const std::size_t> which, std::int64_t from, std::int64_t to) {
    Statistics result;
    for (const std::size_t l : which) {
        const Lane& lane = lanes.lanes[l];
        result.span += to - from;
        const std::size_t first = lane.first_after(from);
        const std::size_t last = lane.first_after(to - 1);  // this one may go on beyond `to`
        const std::size_t end = last < lane.size() && lane.start(last) < to ? last + 1 : last;
        if (first >= end) continue;
        result.events += end - first;
        const auto before = lane.busy_before(first);
        const auto after = lane.busy_before(end);
        for (std::size_t a = 0; a < activity_count; ++a) result.busy[a] += after[a] - before[a];
        const auto cut = [&](std::size_t i, std::int64_t ns) {
            result.busy[static_cast<std::size_t>(lane.activity(i))] -= std::max<std::int64_t>(ns, 0);
        };
        cut(first, from - lane.start(first));
        cut(end - 1, lane.end(end - 1) - to);
    }
    return result;
}

std::vector<NamedStatistics> statistics_by_step(const Lanes& lanes, std::span<const std::size_t> which,
                                                std::int64_t from, std::int64_t to) {
    std::map<std::pair<std::string_view, Activity>, std::size_t> row_of;
    std::vector<std::size_t> row_of_what(lanes.whats.size(), 0);  // one more than the row
    std::vector<NamedStatistics> rows;
    for (const std::size_t l : which) {
        const Lane& lane = lanes.lanes[l];
        for (std::size_t i = lane.first_after(from); i < lane.size() && lane.start(i) < to; ++i) {
            std::size_t& number = row_of_what[lane.what(i)];
            if (number == 0) {
                const What& what = lanes.whats[lane.what(i)];
                const auto [place, is_new] = row_of.try_emplace({what.step, what.activity}, rows.size());
                if (is_new) rows.push_back({what.step, what.activity, 0, 0, INT64_MAX, 0, 0});
                number = place->second + 1;
            }
            NamedStatistics& row = rows[number - 1];
            row.inside += std::min(lane.end(i), to) - std::max(lane.start(i), from);
            if (lane.start(i) < from) continue;
            const std::int64_t duration = lane.end(i) - lane.start(i);
            ++row.count;
            row.total += duration;
            row.shortest = std::min(row.shortest, duration);
            row.longest = std::max(row.longest, duration);
        }
    }
    std::ranges::stable_sort(rows, std::greater{}, &NamedStatistics::inside);
    return rows;
}

}  // namespace rehearse::picture
