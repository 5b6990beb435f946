// SPDX-License-Identifier: Apache-2.0
// What the simulation makes of a collective without any software's time. For message_fit.cpp alone.
#pragma once

#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "calibrate/message_places.hpp"
#include "core/machine.hpp"

namespace rehearse::calibrate {

inline Messaging& messaging_of(Machine& machine, Between between) {
    return between == Between::nodes ? machine.across : machine.inside;
}

/// A collective on links alone, and the messages that it waits for.
struct Wire {
    Seconds time;         // with the links' latency
    double messages = 0;  // one after the other, between those that are fitted
    Bytes size;           // of one of them
    double alone = 0;     // seconds a byte of it on links of its own
};

/// Puts questions to the simulation of a machine, each with other figures of one kind of its messages.
class MessageWires {
public:
    MessageWires(Machine machine, Between between, const CollectiveTime& time, const std::string& where)
        : machine_(std::move(machine)), between_(between), time_(time), where_(where) {}

    /// Returns what `row` takes with these figures.
    Seconds ask(const CollectiveRow& row, double fraction, Seconds overhead = {},
                std::vector<MessagePiece> pieces = {});

    /// InputError "where: ..." where no such message is in its time.
    Wire wire_with_messages(const CollectiveRow& row, double fraction);

    /// Returns what share of links' bandwidth `row` reaches, the largest collective, whose messages go at `rate` one
    /// after the other. InputError "where: ..." where links carry less.
    double fraction_of(const CollectiveRow& row, Bandwidth rate);

    /// Returns what is left of a collective's time for each of its messages, with their time on links of their own.
    MessageSample message_of(const CollectiveRow& row, double fraction);

private:
    Wire wire_of(const CollectiveRow& row, double fraction);
    double slope(CollectiveRow row, double fraction);
    std::string or_sums(const CollectiveRow& row, Bandwidth rate) const;

    Machine machine_;
    Between between_;
    const CollectiveTime& time_;
    const std::string& where_;
    std::map<std::tuple<std::string, std::int64_t, std::int64_t, double>, Wire> wires_;
};

}  // namespace rehearse::calibrate
