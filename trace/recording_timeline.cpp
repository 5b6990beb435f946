// SPDX-License-Identifier: Apache-2.0
// A recording as a timeline, by the framework's own names.
#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include "trace/layout.hpp"
#include "trace/recording.hpp"

namespace rehearse::trace {

Timeline timeline_of(const Recording& recording) {
    Timeline timeline{
        .title = recording.path, .measured = true, .ranks = recording.ranks, .events = {}, .counters = {}};
    const std::int64_t origin = recording.steps.front().start;
    const auto event = [&](std::int64_t start, std::int64_t end, int iteration, Stream stream) {
        Event made;
        made.rank = RankIndex{recording.rank};
        made.stream = stream;
        made.iteration = iteration;
        made.start = from_ns(start - origin);
        made.end = from_ns(end - origin);
        return made;
    };
    std::vector<std::int64_t> reached(recording.steps.size(), std::numeric_limits<std::int64_t>::min());
    const auto put = [&](Event made, int step, std::int64_t end) {
        timeline.events.push_back(std::move(made));
        std::int64_t& last = reached[static_cast<std::size_t>(step)];
        last = std::max(last, end);
    };
    for (const RecordedCall& call : recording.calls) {
        const bool idle = call.part == RecordedCall::Part::idle;
        if (recording.on_device && (call.busy == 0 || idle))
            continue;  // it launched nothing, or waited beside other work
        const std::int64_t end = recording.on_device ? call.at + call.busy : call.end;  // of idle time, its own
        Event made =
            event(call.at, end, call.step, call.part == RecordedCall::Part::loader ? Stream::io : Stream::compute);
        made.step = recording.name_of(call);
        made.pass = to_string(call.part);
        put(std::move(made), call.step, end);
    }
    for (const RecordedCollective& each : recording.collectives) {
        Event made = event(each.start, each.end, each.step, Stream::communication);
        made.step = made.pass = each.kind;
        made.bytes = each.bytes;
        put(std::move(made), each.step, each.end);
    }
    // A step lasts to its end, whatever nothing of it does there.
    for (std::size_t i = 0; i < recording.steps.size(); ++i) {
        const std::int64_t begin = reached[i], end = recording.steps[i].end;
        if (begin >= end || begin == std::numeric_limits<std::int64_t>::min()) continue;
        Event made = event(begin, end, static_cast<int>(i), Stream::compute);
        made.step = "after the last operator";
        made.pass = to_string(RecordedCall::Part::idle);
        timeline.events.push_back(std::move(made));
    }
    sort_events(timeline);
    return timeline;
}

}  // namespace rehearse::trace
