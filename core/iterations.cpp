// SPDX-License-Identifier: Apache-2.0
#include "core/iterations.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <utility>
#include <vector>

namespace rehearse {

namespace {

struct Span {
    int number = 0;
    Seconds start, end;
};

void extend(std::map<int, Span>& spans, const Event& event) {
    Span& span = spans.try_emplace(event.iteration, Span{event.iteration, event.start, event.end}).first->second;
    span.start = std::min(span.start, event.start);
    span.end = std::max(span.end, event.end);
}

// Where a rank begins a step before another one ends the step before, that step is as long as it ends later.
void begin_after_each_other(std::map<int, Span>& spans) {
    if (spans.empty()) return;
    Seconds before = spans.begin()->second.start;
    for (auto& [number, span] : spans) {
        if (span.end > before) span.start = std::max(span.start, before);
        before = std::max(before, span.end);
    }
}

// Of workers of parameter servers, each of which does its steps at its own pace: those of the first one that lie in the
// time in which all of them train. None where there is no such time.
std::vector<Span> beside_all(const Timeline& timeline, std::int64_t workers, const std::vector<Span>& of_first) {
    std::map<RankIndex, Span> whole;
    for (const Event& event : timeline.events) {
        if (event.rank >= workers) continue;
        Span& span = whole.try_emplace(event.rank, Span{0, event.start, event.end}).first->second;
        span.start = std::min(span.start, event.start);
        span.end = std::max(span.end, event.end);
    }
    Seconds begin = whole.begin()->second.start, end = whole.begin()->second.end;
    for (const auto& [rank, span] : whole) begin = std::max(begin, span.start), end = std::min(end, span.end);
    std::vector<Span> inside;
    std::ranges::copy_if(of_first, std::back_inserter(inside),
                         [&](const Span& span) { return span.start >= begin && span.end <= end; });
    return inside;
}

}  // namespace

Iterations iterations(const Timeline& timeline) {
    std::map<int, Span> by_number;
    const std::int64_t workers = workers_of_servers(timeline).value_or(0);
    RankIndex first{};
    if (workers > 0) first = std::ranges::min_element(timeline.events, {}, &Event::rank)->rank;
    for (const Event& event : timeline.events) {
        if (workers == 0 || event.rank == first) extend(by_number, event);
    }
    if (workers == 0) begin_after_each_other(by_number);
    Iterations result;
    result.workers = workers;
    result.left_out = by_number.size() >= 3;
    if (result.left_out) by_number.erase(by_number.begin());
    std::vector<Span> spans;
    for (const auto& [number, span] : by_number) spans.push_back(span);
    if (spans.empty()) return result;
    result.count = static_cast<int>(spans.size());
    if (workers > 0) {
        if (std::vector<Span> inside = beside_all(timeline, workers, spans); !inside.empty()) spans = std::move(inside);
    }
    const auto middle = spans.begin() + static_cast<std::ptrdiff_t>((spans.size() - 1) / 2);
    std::ranges::nth_element(spans, middle, {}, [](const Span& span) { return span.end - span.start; });
    result.middle = middle->number;
    result.start = middle->start;
    result.end = middle->end;
    return result;
}

std::string to_string(const Iterations& iterations) {
    std::string text = "1 iteration";
    if (iterations.count != 1 || iterations.left_out) {
        text = fmt::format("median of {} iterations{}", iterations.count,
                           iterations.left_out ? " (the first, a warm-up, left out)" : "");
    }
    if (iterations.workers > 0) {
        text += fmt::format(", its step the mean of {} workers, which do not wait for each other", iterations.workers);
    }
    return text;
}

}  // namespace rehearse
