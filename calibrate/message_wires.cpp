// SPDX-License-Identifier: Apache-2.0
#include "calibrate/message_wires.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "calibrate/collective_times.hpp"
#include "core/error.hpp"

namespace rehearse::calibrate {

Seconds MessageWires::ask(const CollectiveRow& row, double fraction, Seconds overhead,
                          std::vector<MessagePiece> pieces) {
    Messaging& asked = messaging_of(machine_, between_);
    asked.fraction.value = fraction;
    asked.overhead.value = overhead;
    asked.pieces = std::move(pieces);
    return time_(machine_, row);
}

Wire MessageWires::wire_with_messages(const CollectiveRow& row, double fraction) {
    const Wire wire = wire_of(row, fraction);
    if (wire.messages > 0) return wire;
    throw InputError(fmt::format("{}: {}: on machine '{}' no message between {} is in its time", where_, name_of(row),
                                 machine_.name, word_of(between_)));
}

// Seconds that each byte of the whole adds, near the size of `row`.
double MessageWires::slope(CollectiveRow row, double fraction) {
    const Seconds all = ask(row, fraction);
    row.bytes = row.bytes * 0.5;
    return (all - ask(row, fraction)).value / row.bytes.value;
}

double MessageWires::fraction_of(const CollectiveRow& row, Bandwidth rate) {
    // Links that carry so much less than was measured contradict it; less is the scatter of a measurement.
    constexpr double contradiction = 1.05, least_fraction = 1e-4;
    const double measured = ring_rounds(row.kind, row.ranks)->bus_factor() / rate.value;
    static_cast<void>(wire_with_messages(row, 1));
    const double most = slope(row, 1);
    if (most > contradiction * measured) {
        throw InputError(fmt::format(
            "{}: {}: large ones go at {} (busbw), but the links of machine '{}' that they go over carry {} at "
            "most: correct the links, or say between what the messages were (--between){}",
            where_, name_of(row), to_string(rate), machine_.name, to_string(Bandwidth{rate.value * measured / most}),
            or_sums(row, rate)));
    }
    if (most >= measured) return 1;
    double low = least_fraction, high = 1;  // the slope falls as the fraction grows
    for (int halving = 0; halving < 60; ++halving) {
        const double middle = std::sqrt(low * high);
        (slope(row, middle) > measured ? low : high) = middle;
    }
    return high;
}

// Switches that sum send each byte once, so that all-reduces seem to go faster than a device's links are.
std::string MessageWires::or_sums(const CollectiveRow& row, Bandwidth rate) const {
    const NodeKind& node = machine_.nodes.front();
    if (row.kind != "all_reduce" || row.hosts > 1 || !node.sums.rate.source.empty()) return "";
    const Bandwidth link = reaches_switches(node);
    if (!(rate > link)) return "";
    return fmt::format("; or give the switches that sum ([node.switch_sums]), as that is more than the {} of a device",
                       to_string(link));
}

Wire MessageWires::wire_of(const CollectiveRow& row, double fraction) {
    Wire wire;
    wire.time = ask(row, fraction);
    wire.messages = (ask(row, fraction, Seconds{1}) - wire.time).value;
    // So slow that no link is: what a byte takes is told by two rates, on its own links by what is missing.
    constexpr double byte = 1e-3;
    const auto at = [&](double each) { return ask(row, fraction, {}, {{{}, {}, Bandwidth{1 / each}, {}}}); };
    const Seconds once = at(byte), twice = at(2 * byte);
    const double bytes = (twice - once).value / byte;
    if (!(wire.messages > 0.5) || !(bytes > 0)) return {wire.time, 0, {}, 0};
    wire.size = Bytes{bytes / wire.messages};
    wire.alone = std::max(0.0, byte - (once - wire.time).value / bytes);
    return wire;
}

MessageSample MessageWires::message_of(const CollectiveRow& row, double fraction) {
    const auto [known, fresh] = wires_.try_emplace({row.kind, row.ranks, row.hosts, row.bytes.value});
    if (fresh) known->second = wire_of(row, fraction);
    const Wire& wire = known->second;
    if (!(wire.messages > 0)) return ring_rounds(row.kind, row.ranks)->message(row.bytes, row.time);
    const double alone = wire.alone * wire.size.value;
    constexpr double instant = 1e-12;
    return {wire.size,
            Seconds{std::max((row.time - wire.time).value / wire.messages + alone, std::max(alone, instant))}};
}

}  // namespace rehearse::calibrate
