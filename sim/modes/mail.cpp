// SPDX-License-Identifier: Apache-2.0
#include "sim/modes/mail.hpp"

#include <fmt/format.h>
#include <simgrid/version.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace rehearse::sim {

namespace s4u = simgrid::s4u;

namespace {

// Waits until one of them is over, and returns which.
std::size_t first_over(const std::vector<s4u::CommPtr>& comms) {
#if SIMGRID_VERSION < 33500  // since then a set of activities is waited for
    return static_cast<std::size_t>(s4u::Comm::wait_any(comms));
#else
    s4u::ActivitySet all;
    for (const s4u::CommPtr& comm : comms) all.push(comm);
    const s4u::ActivityPtr done = all.wait_any();
    return static_cast<std::size_t>(std::ranges::find(comms, done) - comms.begin());
#endif
}

}  // namespace

Mail::Mail(Simulation& simulation, Traffic* traffic) : simulation_(simulation), traffic_(traffic) {
    if (traffic_ != nullptr) simulation.watch([this] { look(); });
}

// Nothing is left of a message that has gone, nor of one that waits for its receiver.
void Mail::look() {
    const double now = simulation_.now().value;
    for (auto& [comm, flying] : flying_) {
        const double left = comm->get_remaining();
        if (left > 0) note(flying, looked_, now, left);
    }
    looked_ = now;
}

void Mail::note(Flying& flying, double begin, double end, double left) {
    const double bytes = flying.left - left;
    if (end <= begin || bytes <= 0) return;
    const double rate = bytes / (end - begin);
    const bool same = flying.since >= 0 && std::abs(rate - flying.rate) <= 1e-6 * rate;
    if (!same) {
        flush(flying, begin);
        flying.since = begin;
        flying.rate = rate;
    }
    flying.bytes += bytes;
    flying.left = left;
}

void Mail::flush(Flying& flying, double end) {
    if (flying.since >= 0) traffic_->add(flying.aggregate, Bytes{flying.bytes}, Seconds{flying.since}, Seconds{end});
    flying.bytes = 0;
}

void Mail::land(const s4u::CommPtr& comm) {
    const auto found = flying_.find(comm.get());
    if (found == flying_.end()) return;
    Flying& flying = found->second;
    const double start = (Seconds{comm->get_start_time()} - simulation_.origin()).value;
    const double end = (Seconds{comm->get_finish_time()} - simulation_.origin()).value;
    const double seen = flying.since < 0 ? start : flying.since + flying.bytes / flying.rate;
    note(flying, seen, end, 0);
    flush(flying, end);
    flying_.erase(found);
}

s4u::Mailbox* Mail::box(int channel, std::int64_t from, std::int64_t to) {
    s4u::Mailbox*& found = boxes_[{channel, from, to}];
    if (found == nullptr) {
        found = s4u::Mailbox::by_name(fmt::format("{}:{}>{}", channel, from, to));
    }
    return found;
}

Mail::Moved Mail::exchange(RankIndex rank, std::span<const Exchange> messages, int channel, Seconds when) {
    if (messages.empty()) return {when, when};
    simulation_.sleep_until(when);
    std::vector<Open> open(messages.size());
    bool cut_up = false;
    for (std::size_t i = 0; i < messages.size(); ++i) {
        const Exchange& message = messages[i];
        const bool choice =
            message.bytes.value >= static_cast<double>(cut) &&
            (message.sends ? simulation_.has_choice(rank, message.peer) : simulation_.has_choice(message.peer, rank));
        open[i] = {.message = &message, .pieces = choice ? cut : 1};
        cut_up = cut_up || choice;
        if (message.sends) ++count_;
    }
    std::vector<s4u::CommPtr> comms;
    std::vector<std::size_t> of;  // messages, by comm
    for (std::int64_t turn = 0; turn < (cut_up ? at_once : 1); ++turn) {
        for (std::size_t i = 0; i < open.size(); ++i) {
            if (open[i].begun == open[i].pieces) continue;
            comms.push_back(start(rank, channel, open[i]));
            of.push_back(i);
        }
    }
    Moved moved{Seconds{std::numeric_limits<double>::infinity()}, when};
    for (std::size_t next = 0; next < comms.size() && !cut_up; ++next) {
        comms[next]->wait();
        over(rank, comms[next], *open[of[next]].message, moved);
    }
    while (cut_up && !comms.empty()) {
        const std::size_t done = first_over(comms);
        Open& message = open[of[done]];
        over(rank, comms[done], *message.message, moved);
        if (message.begun < message.pieces) {
            comms[done] = start(rank, channel, message);
        } else {
            comms.erase(comms.begin() + static_cast<std::ptrdiff_t>(done));
            of.erase(of.begin() + static_cast<std::ptrdiff_t>(done));
        }
    }
    return moved;
}

void Mail::over(RankIndex rank, const s4u::CommPtr& comm, const Exchange& message, Moved& moved) {
    if (traffic_ != nullptr) land(comm);
    if (message.sends) simulation_.land(rank, message.peer);
    moved.start = std::min(moved.start, Seconds{comm->get_start_time()} - simulation_.origin());
    const Seconds left = Seconds{comm->get_finish_time()} - simulation_.origin();
    moved.end = std::max(moved.end, left + message.afterwards);
}

s4u::CommPtr Mail::start(RankIndex rank, int channel, Open& open) {
    const Exchange& message = *open.message;
    const std::int64_t number = open.begun++;
    if (!message.sends) return box(channel, message.peer, rank)->get_async(&open.received);
    const auto all = static_cast<std::int64_t>(message.bytes.value);
    const std::int64_t bytes = all * (number + 1) / open.pieces - all * number / open.pieces;
    s4u::CommPtr comm = box(channel, rank, message.peer)->put_async(&payload_, static_cast<std::uint64_t>(bytes));
    if (traffic_ != nullptr && bytes > 0) {
        flying_[comm.get()] = {.aggregate = traffic_->aggregate(Flow{rank, message.peer}),
                               .left = static_cast<double>(bytes)};
    }
    return comm;
}

}  // namespace rehearse::sim
