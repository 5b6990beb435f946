// SPDX-License-Identifier: Apache-2.0
// A timeline as a window needs it: one lane a rank and stream, its events in columns sorted by start, and beside them a
// pyramid of how each bin of time is spent, so that ten million events are drawn as fast as a thousand.
//   level 0   |f  |fb |b  |c  |   a bin holds one or a few events: of its time, the share of each activity in 1/255
//   level 1   |f  b   |b  c   |   each level half as many bins
// A rank of several lanes has a pyramid of its own, of all its lanes over each other.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "core/dependencies.hpp"
#include "picture/activity.hpp"

namespace rehearse::picture {

/// What an event says besides when and where; shared by all events that say the same.
struct What {
    std::string step, layer, pass;
    int micro_batch = 0;
    double bytes = 0, flops = 0;
    Activity activity = Activity::other;
    auto operator<=>(const What&) const = default;
};

/// 255 is a whole bin.
using Coverage = std::array<std::uint8_t, activity_count>;
/// The finest level first; bins of the whole timeline.
using Pyramid = std::vector<std::vector<Coverage>>;

class Lane {
public:
    std::string name;       // "compute"
    std::int64_t rank = 0;  // of the job; a process of another program's trace
    Stream stream = Stream::compute;
    int number = 0;  // events of one stream that overlap lie on lanes of their own

    std::size_t size() const { return starts_.size(); }
    std::int64_t start(std::size_t i) const { return starts_[i]; }
    std::int64_t end(std::size_t i) const {
        const std::uint32_t duration = durations_[i];
        return starts_[i] + (duration == is_long ? long_duration(i) : static_cast<std::int64_t>(duration));
    }
    std::uint32_t what(std::size_t i) const { return whats_[i]; }
    int iteration(std::size_t i) const;
    Activity activity(std::size_t i) const { return activities_[i]; }
    /// Event::flow, as far as it has 32 bits: 0 is none, or not known.
    std::uint32_t flow(std::size_t i) const { return flows_.empty() ? 0 : flows_[i]; }
    /// Of each event; empty where the lane has none.
    std::span<const std::uint32_t> flows() const { return flows_; }
    /// Index into Lanes::arguments; nothing where another program's trace has none for this event.
    std::optional<std::uint32_t> arguments(std::size_t i) const {
        return arguments_.empty() || arguments_[i] == 0 ? std::nullopt : std::optional(arguments_[i] - 1);
    }

    /// The first event that ends after `ns`; size() when there is none. Events of a lane never overlap.
    std::size_t first_after(std::int64_t ns) const;
    std::optional<std::size_t> at(std::int64_t ns) const;

    const Pyramid& levels() const { return levels_; }
    /// Nanoseconds of each activity before event i.
    std::array<std::int64_t, activity_count> busy_before(std::size_t i) const;
    std::size_t memory_bytes() const;

private:
    friend class LanesBuilder;
    static constexpr std::uint32_t is_long = 0xFFFFFFFF;
    std::int64_t long_duration(std::size_t i) const;

    std::vector<std::int64_t> starts_;
    std::vector<std::uint32_t> durations_;  // is_long: see long_
    std::vector<std::uint32_t> whats_;
    std::vector<Activity> activities_;
    struct Run {
        std::uint32_t first;  // event
        std::int32_t iteration;
    };
    std::vector<Run> iterations_;               // of events that follow each other
    std::vector<std::uint32_t> flows_;          // empty: none
    std::vector<std::uint32_t> arguments_;      // one more than the index; empty: none
    std::map<std::size_t, std::int64_t> long_;  // durations of 4.3 s and more
    Pyramid levels_;
    std::vector<std::array<std::int64_t, activity_count>> prefix_;  // before every 64th event
};

struct Lanes {
    std::string title;
    bool measured = false;
    std::int64_t ranks = 0;
    std::vector<What> whats;
    std::vector<Lane> lanes;  // by rank, stream, number
    std::vector<Counter> counters;
    std::vector<LinkUse> links;
    std::vector<Dependencies> dependencies;          // none: not known
    std::map<std::int64_t, std::string> rank_names;  // of another program's processes
    std::vector<std::string> arguments;              // of another program's events: a line each, "key: value"
    std::int64_t first = 0, last = 1;                // ns; last > first
    std::map<std::int64_t, Pyramid> of_rank;         // of the ranks that have several lanes

    std::size_t size() const;
    std::size_t memory_bytes() const;
    /// Of all lanes of the rank over each other; empty where it has fewer than two.
    const Pyramid& levels_of(std::int64_t rank) const;
};

/// Lanes of one event each time, in any order.
class LanesBuilder {
public:
    LanesBuilder(std::string title, bool measured, std::int64_t ranks);

    std::size_t lane(std::int64_t rank, Stream stream, const std::string& name);
    std::uint32_t what(const What& what);
    /// Nanoseconds; a negative duration counts as none.
    void add(std::size_t lane, std::int64_t start, std::int64_t duration, std::uint32_t what, int iteration = 0,
             std::int64_t flow = 0);
    /// What else the event that was added last says.
    void set_arguments(std::size_t lane, std::string lines);
    /// A flow goes through the event of the lane that lasts at this moment, the innermost of several; with `next`,
    /// through the first that begins then or later. An event that has a flow keeps it.
    void bind_flow(std::size_t lane, std::int64_t ns, std::int64_t flow, bool next);
    void add(Counter counter) { result_.counters.push_back(std::move(counter)); }
    void add(LinkUse use) { result_.links.push_back(std::move(use)); }
    void add(Dependencies dependencies) { result_.dependencies.push_back(std::move(dependencies)); }
    std::size_t events() const { return events_; }

    Lanes finish();

private:
    struct Added {  // an event; a lane's in one piece, so that adding to many lanes in turn touches little memory
        std::int64_t start, duration;
        std::uint32_t what, flow;
        std::int32_t iteration;
        std::uint32_t arguments = 0;  // one more than the index
    };
    struct Bound {  // a flow at a moment of a lane
        std::int64_t ns;
        std::uint32_t flow;
        bool next;
    };
    static void bind(std::vector<Added>& sorted, const std::vector<Bound>& flows);
    std::vector<Lane> apart(const Lane& lane, std::vector<Added> events, const std::vector<Bound>& flows) const;
    void append(Lane& to, const Added& event) const;
    static void reserve(Lane& lane, std::size_t events);
    void build(std::span<Lane> rank, Pyramid* together) const;

    Lanes result_;
    std::vector<std::vector<Added>> added_;  // of each lane
    std::map<std::size_t, std::vector<Bound>> bound_;
    std::map<std::tuple<std::int64_t, Stream, std::string>, std::size_t> lane_of_;
    std::map<What, std::uint32_t> what_of_;
    std::size_t events_ = 0;
};

Lanes lanes_of(const Timeline& timeline);
/// The same the other way round, in whole nanoseconds. Flows of more than 32 bits are not known any more.
Timeline timeline_of(const Lanes& lanes);

/// Of the lanes and the time [from, to): how long each activity lasts in all, exact to the nanosecond, and how many
/// events there are.
struct Statistics {
    std::array<std::int64_t, activity_count> busy{};  // ns, summed over lanes
    std::size_t events = 0;
    std::int64_t span = 0;  // ns of time in all lanes
};
Statistics statistics(const Lanes& lanes, std::span<const std::size_t> which, std::int64_t from, std::int64_t to);

/// The same by what is done, a row for each name and activity (one name may be of a call and of its kernel), of all
/// events that last in [from, to): `inside`, the part of their time that lies in it; and of those that begin in it the
/// count, and the whole time of all, the shortest and the longest. What lasts longest inside comes first.
struct NamedStatistics {
    std::string step;
    Activity activity = Activity::other;
    std::size_t count = 0;
    std::int64_t total = 0, shortest = 0, longest = 0;  // ns
    std::int64_t inside = 0;                            // ns
};
std::vector<NamedStatistics> statistics_by_step(const Lanes& lanes, std::span<const std::size_t> which,
                                                std::int64_t from, std::int64_t to);

}  // namespace rehearse::picture
