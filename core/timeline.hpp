// SPDX-License-Identifier: Apache-2.0
// When everything happened: predicted by sim or measured by run, in the same words.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "core/schedule.hpp"
#include "core/units.hpp"

namespace rehearse {

struct Event {
    RankIndex rank{0};
    Stream stream = Stream::compute;
    std::string step;   // Step::name
    std::string layer;  // "conv1"; the bucket's name for communication and updates
    std::string pass;   // "forward", "backward_data", "backward_weights", "update", "allreduce", "load", ...
    int micro_batch = 0;
    int iteration = 0;   // which training step, from 0
    Seconds start, end;  // since the timeline's origin
    Bytes bytes;         // on the wire for communication, moved for compute
    Flops flops;
    /// Other than 0: a message or a collective, which the events with this number send, receive or take part in.
    std::int64_t flow = 0;
    BucketIndex bucket{};  // that a server works on; of none: all else, and what was read from a file
};

/// A value over time, constant from each point to the next: memory in use, what a link carries.
struct Counter {
    std::string name;  // "memory rank 0", "link node0:nic0:up" (LinkUse::name)
    std::string unit;  // "bytes", "B/s"
    std::vector<std::pair<Seconds, double>> points;
};

/// Whether a link leads from a network card into the fabric, out of the fabric to a card, or neither.
enum class Crossing : std::uint8_t { neither, into_fabric, out_of_fabric };

/// What a directed link carried in the whole timeline, or all links of a kind together.
struct LinkUse {
    std::string name;        // "node0:nic0:up"; of a kind the same as `kind`
    std::string kind;        // "nic:up", "gpu>cpu", "switch0:up": as the name, without what tells links of a kind apart
    std::int64_t links = 1;  // of that kind, that carried something
    Bandwidth capacity;      // of one link, for long messages
    Bytes bytes;             // on all of them
    Bytes most;              // on the one that carried most
    Crossing crossing{};     // of a kind of links. Not in files
    bool operator==(const LinkUse& other) const {
        return std::tie(name, kind, links, capacity, bytes, most) ==
               std::tie(other.name, other.kind, other.links, other.capacity, other.bytes, other.most);
    }
};
/// The share of what the links could have carried in that time.
double utilisation(const LinkUse& use, Seconds length);

struct Timeline {
    std::string title;  // "resnet50 on summit, data=384, predicted"
    bool measured = false;
    std::int64_t ranks = 1;     // of the whole job; events may be of representatives only
    std::vector<Event> events;  // ordered by (iteration, rank, start)
    std::vector<Counter> counters;
    std::vector<LinkUse> links{};  // kinds of links, then single ones; only where it was asked for
};
/// From the first start to the last end of any event.
Seconds length(const Timeline& timeline);

/// One training step in figures, of the rank that ends it last: the median iteration, the first (a warm-up) left out
/// when there are three or more. The parts add up to `step`.
struct Summary {
    Seconds step;          // from the first start to the last end of an iteration
    Seconds compute;       // the compute stream is busy
    Seconds exposed_comm;  // it is idle, and waits for messages and collectives
    Seconds io_wait;       // ... for samples
    Seconds bubble;        // ... for another stage of the pipeline to compute, as the schedule's order has it
    Seconds rest;          // ... for none of these
};
/// Of a timeline without its program, idle time counts as communication while any of this rank's goes on, then as io
/// while it loads, else as the rest. Of one with parameter servers as `steady` has it.
Summary summarize(const Timeline& timeline);

/// Of a timeline in which ranks trade with parameter servers (pass "trade"), and wait for nobody else, how many these
/// are: servers have the numbers after theirs. Nothing of all others, whose ranks are in step.
std::optional<std::int64_t> workers_of_servers(const Timeline& timeline);

/// Likewise of ranks that do not wait for each other: the time in which all of them do as many samples as one step of
/// each has, from the end of each rank's first quarter of its steps to the end of its last. Events of ranks from
/// `ranks` on (servers) do not count.
Summary steady(const Timeline& timeline, std::int64_t ranks);
/// How long each of the steps took that `steady` is the mean of: from the end of a rank's step to that of its next.
std::vector<Seconds> steady_steps(const Timeline& timeline, std::int64_t ranks);
/// Whichever the schedule has. Idle time is what the rank waits for (core/waits.hpp).
Summary summarize(const Schedule& schedule, const Timeline& timeline);

}  // namespace rehearse
