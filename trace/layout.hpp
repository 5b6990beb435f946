// SPDX-License-Identifier: Apache-2.0
// What the formats share: whole nanoseconds, the names of timelines and ranks, and lanes that keep events apart.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/timeline.hpp"

namespace rehearse::trace {

/// Marks a file as ours; readers refuse any other.
inline constexpr std::string_view schema = "rehearse.timeline/1";
/// Names the instants of a Perfetto trace that each carry a LinkUse.
inline constexpr std::string_view link_instant = "rehearse.link";

std::int64_t to_ns(Seconds time);
Seconds from_ns(std::int64_t ns);
/// Time since the origin when the file's times have `shift` added. Nothing when beyond what to_ns can give.
std::optional<Seconds> from_file_ns(std::int64_t ns, std::int64_t shift);

/// Nanoseconds to add to all times of a file so that none is negative: viewers drop what lies before zero.
std::int64_t shift_of(std::span<const Timeline> timelines);

/// "predicted" or "measured", numbered from the second of a kind on: "measured 2".
std::vector<std::string> labels_of(std::span<const Timeline> timelines);

/// "rank 3" of a file's only timeline, else "measured: rank 3".
std::string process_name(const std::vector<std::string>& labels, std::size_t timeline, std::string_view what);

/// Viewers draw the events of one track as nested calls and drop those that overlap without nesting, so events of one
/// (rank, stream) that overlap lie on different lanes. Lane 0 is enough as long as they don't.
struct Lane {
    RankIndex rank{0};
    Stream stream = Stream::compute;
    int number = 0;
};

struct Layout {
    std::vector<Lane> lanes;           // ordered by rank, stream, number
    std::vector<std::size_t> lane_of;  // event -> lane
    std::vector<std::size_t> order;    // events by start; in it, each lane's events follow each other in time
    std::vector<RankIndex> ranks;      // that have events, ascending
};
Layout lay_out(const Timeline& timeline);

/// Into the order that Timeline promises, keeping the given order where that leaves a choice.
void sort_events(Timeline& timeline);

}  // namespace rehearse::trace
