// SPDX-License-Identifier: Apache-2.0
// Messages between the ranks of a SimGrid simulation. Included by this folder's sources only.
#pragma once

#include <map>
#include <span>
#include <tuple>
#include <unordered_map>

#include "sim/collective/exchanges.hpp"
#include "sim/network/adaptive.hpp"
#include "sim/network/traffic.hpp"
#include "sim/network/zone.hpp"

namespace rehearse::sim {

/// A message starts when both its ends have come to it, and occupies both until a latency after its last byte (and its
/// receiver until it has combined it). Called by actors.
class Mail {
public:
    /// What goes over the links is told to `traffic`, when there is one.
    explicit Mail(Simulation& simulation, Traffic* traffic = nullptr);

    struct Moved {
        Seconds start, end;  // when the first began, and when the last is over
    };
    /// All of one rank's messages of one round, from `when` on. Those of one channel do not match another's: a
    /// communicator's stream, or, at both ends of a message, the sender's.
    Moved exchange(RankIndex rank, std::span<const Exchange> messages, Stream channel, Seconds when) {
        return exchange(rank, messages, static_cast<int>(channel), when);
    }
    Moved exchange(RankIndex rank, std::span<const Exchange> messages, int channel, Seconds when);
    /// Messages sent so far.
    std::int64_t count() const { return count_; }

private:
    /// Into so many pieces a message is cut where switches choose a way for each, and so many of them are under way.
    static constexpr std::int64_t cut = message_pieces, at_once = 4;

    /// A message of which pieces have begun.
    struct Open {
        const Exchange* message = nullptr;
        std::int64_t pieces = 1, begun = 0;
        char* received = nullptr;
    };
    simgrid::s4u::CommPtr start(RankIndex rank, int channel, Open& open);
    void over(RankIndex rank, const simgrid::s4u::CommPtr& comm, const Exchange& message, Moved& moved);
    simgrid::s4u::Mailbox* box(int channel, std::int64_t from, std::int64_t to);

    // A message while it moves, and since when at the same rate.
    struct Flying {
        int aggregate = 0;
        double left = 0;  // of its bytes, when last looked at
        double since = -1, bytes = 0, rate = 0;
    };
    void look();
    void land(const simgrid::s4u::CommPtr& comm);
    void note(Flying& flying, double begin, double end, double left);
    void flush(Flying& flying, double end);

    const Simulation& simulation_;
    std::map<std::tuple<int, std::int64_t, std::int64_t>, simgrid::s4u::Mailbox*> boxes_;  // by name is slow
    std::int64_t count_ = 0;
    Traffic* traffic_;
    std::unordered_map<const simgrid::s4u::Comm*, Flying> flying_;
    double looked_ = 0;  // when
    char payload_ = 0;   // SimGrid wants an address to send
};

}  // namespace rehearse::sim
