// SPDX-License-Identifier: Apache-2.0
// What a round of messages costs, in the compact form in which collectives keep it. A round with the same messages as
// an earlier one is not counted again.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "sim/collective/in_switch.hpp"
#include "sim/collective/rounds.hpp"

namespace rehearse::sim {

struct PatternMessage {
    std::int32_t from = 0, to = 0;  // devices
    std::int32_t cost = 0;          // index into Pattern::costs
};

struct MessageCost {
    Seconds latency;
    PerByte alone, combine;
    bool across = false;  // from node to node
    auto operator<=>(const MessageCost&) const = default;
};

/// Costs are of a byte of the round's mean message.
struct Pattern {
    std::vector<PatternMessage> messages;
    std::vector<MessageCost> costs;  // few: most messages are like others
    std::vector<Meeting> meetings;
    std::vector<std::int32_t> members;
    std::vector<double> sizes{};  // of messages, relative to their mean; none: all are equal
    bool apart = false;           // no link is so busy that one message holds another up, whenever they start

    std::span<const std::int32_t> members_of(const Meeting& meeting) const {
        return std::span{members}.subspan(static_cast<std::size_t>(meeting.first),
                                          static_cast<std::size_t>(meeting.last - meeting.first));
    }
};

/// Alike rounds of a collective, one after the other.
struct Stage {
    std::shared_ptr<const Pattern> pattern;
    std::int64_t repeats = 1;
    double share = 0;                // of the elements, in each message
    double passes = 0;               // over what arrives
    std::optional<InSwitch> sums{};  // whose latency stands instead of the messages' own
};

class Patterns {
public:
    explicit Patterns(const Wiring& wiring) : wiring_(wiring), counter_(wiring) {}

    /// Messages of one size: counted, whatever that size will be.
    std::shared_ptr<const Pattern> of_equal(std::span<const Flow> flows);
    /// The same messages as another wiring of the same nodes had.
    std::shared_ptr<const Pattern> weighed(const std::shared_ptr<const Pattern>& elsewhere);
    /// Messages whose sizes have these proportions: when each has left when all start together stands in `alone`. Each
    /// has a cost of its own.
    std::shared_ptr<const Pattern> of_unequal(std::span<const Flow> flows, std::span<const Bytes> bytes) const;

private:
    Pattern count(std::span<const Flow> flows);

    const Wiring& wiring_;
    RoundCounter counter_;
    std::unordered_multimap<std::uint64_t, std::shared_ptr<const Pattern>> known_;  // by a hash of who sends to whom
    std::unordered_map<std::shared_ptr<const Pattern>, std::shared_ptr<const Pattern>> weighed_;  // by those elsewhere
};

}  // namespace rehearse::sim
