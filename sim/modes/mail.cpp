// SPDX-License-Identifier: Apache-2.0
#include "sim/modes/mail.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace rehearse::sim {

namespace s4u = simgrid::s4u;

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
    std::vector<s4u::CommPtr> comms;
    std::vector<char*> received(messages.size());
    for (std::size_t i = 0; i < messages.size(); ++i) {
        const Exchange& message = messages[i];
        if (message.sends) {
            const auto bytes = static_cast<std::uint64_t>(message.bytes.value);
            comms.push_back(box(channel, rank, message.peer)->put_async(&payload_, bytes));
            ++count_;
            if (traffic_ != nullptr && bytes > 0) {
                flying_[comms.back().get()] = {.aggregate = traffic_->aggregate(Flow{rank, message.peer}),
                                               .left = static_cast<double>(bytes)};
            }
        } else {
            comms.push_back(box(channel, message.peer, rank)->get_async(&received[i]));
        }
    }
    Moved moved{Seconds{std::numeric_limits<double>::infinity()}, when};
    for (std::size_t i = 0; i < messages.size(); ++i) {
        comms[i]->wait();
        if (traffic_ != nullptr) land(comms[i]);
        moved.start = std::min(moved.start, Seconds{comms[i]->get_start_time()} - simulation_.origin());
        const Seconds left = Seconds{comms[i]->get_finish_time()} - simulation_.origin();
        moved.end = std::max(moved.end, left + messages[i].afterwards);
    }
    return moved;
}

}  // namespace rehearse::sim
