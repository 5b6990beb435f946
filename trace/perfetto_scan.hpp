// SPDX-License-Identifier: Apache-2.0
// Our Perfetto files event by event, without a list of events, for those who keep them in less memory than a Timeline
// takes.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "core/dependencies.hpp"
#include "core/timeline.hpp"

namespace rehearse::trace {

struct ScannedEvent {
    std::uint64_t track = 0;          // of one rank and stream; its events do not overlap
    std::int64_t start = 0, end = 0;  // ns since the origin
    std::uint32_t what = 0;           // counted from 0, as `what` was called
    RankIndex rank{0};
    Stream stream = Stream::compute;
    int iteration = 0;
    std::int64_t flow = 0;  // Event::flow
};

struct ScanVisitor {
    std::function<void(const Timeline& head)> head;  // title, kind, ranks; before all events
    std::function<void(const Event& event)> what;    // step, layer, pass, micro-batch, bytes and flops of a new kind
    std::function<void(const ScannedEvent& event)> event;
    std::function<void(Counter counter)> counter;
    std::function<void(LinkUse use)> link;
    std::function<bool(double share)> progress;  // 0 to 1; false stops
    std::function<void(Dependencies dependencies)> dependencies = {};
};

/// False where the file is anything but one whole timeline that we wrote: `read` then says what is wrong with it, and
/// what the visitor was told does not count.
bool scan_perfetto(const std::string& path, const ScanVisitor& visitor);

}  // namespace rehearse::trace
