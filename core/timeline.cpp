// SPDX-License-Identifier: Apache-2.0
#include "core/timeline.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <span>

#include "core/iterations.hpp"
#include "core/methods/servers.hpp"
#include "core/waits.hpp"

namespace rehearse {

namespace {

struct Interval {
    double start = 0, end = 0;
};

// Sorted, disjoint intervals that cover the same time.
std::vector<Interval> merged(std::vector<Interval> intervals) {
    std::ranges::sort(intervals, {}, &Interval::start);
    std::vector<Interval> result;
    for (const Interval& next : intervals) {
        if (!result.empty() && next.start <= result.back().end) {
            result.back().end = std::max(result.back().end, next.end);
        } else {
            result.push_back(next);
        }
    }
    return result;
}

double length(const std::vector<Interval>& intervals) {
    double sum = 0;
    for (const Interval& interval : intervals) sum += interval.end - interval.start;
    return sum;
}

// Time covered by `busy` or by `more`, beyond what `busy` covers.
double added(std::vector<Interval>& busy, const std::vector<Interval>& more) {
    const double before = length(busy);
    busy.insert(busy.end(), more.begin(), more.end());
    busy = merged(std::move(busy));
    return length(busy) - before;
}

// What is left of them from `start` on.
void begin_at(double start, std::vector<Interval>& intervals) {
    std::erase_if(intervals, [&](const Interval& interval) { return interval.end <= start; });
    for (Interval& interval : intervals) interval.start = std::max(interval.start, start);
}

struct RankStep {
    std::vector<Interval> compute, communication, io;
    double start = 0, end = -std::numeric_limits<double>::infinity();
};

Summary summary_of(RankStep& rank, double start, double end) {
    std::vector<Interval> busy = merged(rank.compute);
    Summary s;
    s.step = Seconds{end - start};
    s.compute = Seconds{length(busy)};
    s.exposed_comm = Seconds{added(busy, rank.communication)};
    s.io_wait = Seconds{added(busy, rank.io)};
    s.rest = Seconds{std::max(0.0, end - start - length(busy))};
    return s;
}

}  // namespace

double utilisation(const LinkUse& use, Seconds length) {
    const Bytes most = use.capacity * (length * static_cast<double>(use.links));
    return most > Bytes{} ? use.bytes / most : 0;
}

Seconds length(const Timeline& timeline) {
    if (timeline.events.empty()) return {};
    Seconds first = timeline.events.front().start, last = timeline.events.front().end;
    for (const Event& event : timeline.events) {
        first = std::min(first, event.start);
        last = std::max(last, event.end);
    }
    return last - first;
}

namespace {

/// An iteration of the rank that ends it last; `end` is that rank's.
struct Iteration {
    int number = 0;
    RankIndex rank{0};
    double start = 0, end = 0;
    RankStep busy{};
};

/// The median one as a whole, so that its parts add up; nothing without events.
std::optional<Iteration> median_iteration(const Timeline& timeline) {
    if (timeline.events.empty()) return std::nullopt;
    const Iterations chosen = iterations(timeline);
    std::map<RankIndex, RankStep> ranks;
    for (const Event& event : timeline.events) {
        if (event.iteration != chosen.middle) continue;
        RankStep& rank = ranks[event.rank];
        auto& stream = event.stream == Stream::compute ? rank.compute
                       : event.stream == Stream::io    ? rank.io
                                                       : rank.communication;
        stream.push_back({event.start.value, event.end.value});
        rank.end = std::max(rank.end, event.end.value);
    }
    auto& [last, busy] = *std::ranges::max_element(ranks, {}, [](const auto& each) { return each.second.end; });
    const double start = chosen.start.value;
    for (auto* stream : {&busy.compute, &busy.communication, &busy.io}) begin_at(start, *stream);
    return Iteration{chosen.middle, last, start, busy.end, std::move(busy)};
}

}  // namespace

std::optional<std::int64_t> workers_of_servers(const Timeline& timeline) {
    std::int64_t workers = 0;
    bool any = false;
    for (const Event& event : timeline.events) {
        const bool trades = event.pass == "trade";
        any = any || trades;
        if (trades || event.pass == "forward") workers = std::max(workers, event.rank + 1);
    }
    return any ? std::optional{workers} : std::nullopt;
}

Summary summarize(const Timeline& timeline) {
    if (const auto workers = workers_of_servers(timeline)) return steady(timeline, *workers);
    std::optional<Iteration> median = median_iteration(timeline);
    return median ? summary_of(median->busy, median->start, median->end) : Summary{};
}

namespace {

/// A rank's events after its first quarter of steps, as one long step; how many it stands for.
struct Settled {
    RankStep whole;
    int iterations = 0;
};

Settled settled(const std::vector<const Event*>& events) {
    const auto [earliest, latest] = std::ranges::minmax(events, {}, &Event::iteration);
    const int all = latest->iteration + 1 - earliest->iteration;
    const int first = earliest->iteration + all / 4;  // that counts
    Settled result;
    result.iterations = all - all / 4;
    result.whole.start = (*std::ranges::min_element(events, {}, &Event::start))->start.value;
    for (const Event* event : events) {
        const double start = event->start.value, end = event->end.value;
        if (event->iteration < first) {
            result.whole.start = std::max(result.whole.start, end);
            continue;
        }
        auto& stream = event->stream == Stream::compute ? result.whole.compute
                       : event->stream == Stream::io    ? result.whole.io
                                                        : result.whole.communication;
        stream.push_back({start, end});
        result.whole.end = std::max(result.whole.end, end);
    }
    return result;
}

}  // namespace

Summary steady(const Timeline& timeline, std::int64_t ranks) {
    std::map<RankIndex, std::vector<const Event*>> by_rank;
    for (const Event& event : timeline.events) {
        if (event.rank < ranks) by_rank[event.rank].push_back(&event);
    }
    if (by_rank.empty()) return {};
    // Of all steps a second the mean one: a rank that does more of them has more say in what a step is made of.
    Summary mean;
    double rate = 0;
    for (const auto& [rank, events] : by_rank) {
        Settled one = settled(events);
        const Summary s = summary_of(one.whole, one.whole.start, one.whole.end);
        const double a_second = 1 / s.step.value;
        mean.compute += s.compute * a_second;
        mean.exposed_comm += s.exposed_comm * a_second;
        mean.io_wait += s.io_wait * a_second;
        mean.rest += s.rest * a_second;
        rate += one.iterations * a_second;
    }
    for (Seconds* part : {&mean.compute, &mean.exposed_comm, &mean.io_wait, &mean.rest}) *part = *part * (1 / rate);
    mean.step = Seconds{static_cast<double>(by_rank.size()) / rate};
    return mean;
}

std::vector<Seconds> steady_steps(const Timeline& timeline, std::int64_t ranks) {
    std::map<RankIndex, std::map<int, Interval>> by_rank;  // each step from its first event to its last
    for (const Event& event : timeline.events) {
        if (event.rank >= ranks) continue;
        const double start = event.start.value, end = event.end.value;
        Interval& step = by_rank[event.rank].try_emplace(event.iteration, Interval{start, end}).first->second;
        step = {std::min(step.start, start), std::max(step.end, end)};
    }
    std::vector<Seconds> steps;
    for (const auto& [rank, its] : by_rank) {
        const int first = its.begin()->first + (its.rbegin()->first + 1 - its.begin()->first) / 4;  // that counts
        double before = its.begin()->second.start;
        for (const auto& [iteration, step] : its) {
            if (iteration >= first) steps.push_back(Seconds{step.end - before});
            before = step.end;
        }
    }
    return steps;
}

Summary summarize(const Schedule& schedule, const Timeline& timeline) {
    if (schedule.methods.get<Servers>().count > 0) return steady(timeline, ranks(schedule.mesh));
    std::optional<Iteration> median = median_iteration(timeline);
    if (!median) return {};
    const auto of_it = std::ranges::equal_range(timeline.events, median->number, {}, &Event::iteration);
    const Waits idle = waits(schedule, std::span{of_it.begin(), of_it.end()}, median->rank, Seconds{median->start},
                             Seconds{median->end});
    Summary s;
    s.step = Seconds{median->end - median->start};
    s.compute = Seconds{length(merged(std::move(median->busy.compute)))};
    s.exposed_comm = idle.communication;
    s.io_wait = idle.io;
    s.bubble = idle.bubble;
    s.rest = idle.rest;
    return s;
}

}  // namespace rehearse
