// SPDX-License-Identifier: Apache-2.0
#include "core/iterations.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace rehearse {

Iterations iterations(const Timeline& timeline) {
    struct Span {
        int number;
        Seconds start, end;
    };
    std::map<int, Span> by_number;
    for (const Event& event : timeline.events) {
        Span& span =
            by_number.try_emplace(event.iteration, Span{event.iteration, event.start, event.end}).first->second;
        span.start = std::min(span.start, event.start);
        span.end = std::max(span.end, event.end);
    }
    Iterations result;
    result.left_out = by_number.size() >= 3;
    if (result.left_out) by_number.erase(by_number.begin());
    std::vector<Span> spans;
    for (const auto& [number, span] : by_number) spans.push_back(span);
    if (spans.empty()) return result;
    const auto middle = spans.begin() + static_cast<std::ptrdiff_t>((spans.size() - 1) / 2);
    std::ranges::nth_element(spans, middle, {}, [](const Span& span) { return span.end - span.start; });
    result.count = static_cast<int>(spans.size());
    result.middle = middle->number;
    result.start = middle->start;
    result.end = middle->end;
    return result;
}

std::string to_string(const Iterations& iterations) {
    if (iterations.count == 1 && !iterations.left_out) return "1 iteration";
    return fmt::format("median of {} iterations{}", iterations.count,
                       iterations.left_out ? " (the first, a warm-up, left out)" : "");
}

}  // namespace rehearse
