// SPDX-License-Identifier: Apache-2.0
#include "sim/mail.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

namespace rehearse::sim {

namespace s4u = simgrid::s4u;

s4u::Mailbox* Mail::box(Channel channel, std::int64_t from, std::int64_t to) {
    s4u::Mailbox*& found = boxes_[{channel, from, to}];
    if (found == nullptr) {
        found = s4u::Mailbox::by_name(fmt::format("{}:{}>{}", static_cast<int>(channel), from, to));
    }
    return found;
}

Mail::Moved Mail::exchange(std::int64_t rank, std::span<const Exchange> messages, Channel channel, Seconds when) {
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
        } else {
            comms.push_back(box(channel, message.peer, rank)->get_async(&received[i]));
        }
    }
    Moved moved{Seconds{std::numeric_limits<double>::infinity()}, when};
    for (std::size_t i = 0; i < messages.size(); ++i) {
        comms[i]->wait();
        moved.start = std::min(moved.start, Seconds{comms[i]->get_start_time()} - simulation_.origin());
        const Seconds left = Seconds{comms[i]->get_finish_time()} - simulation_.origin();
        moved.end = std::max(moved.end, left + messages[i].afterwards);
    }
    return moved;
}

}  // namespace rehearse::sim
