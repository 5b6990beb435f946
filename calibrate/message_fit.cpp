// SPDX-License-Identifier: Apache-2.0
#include "calibrate/message_fit.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include "calibrate/collective_times.hpp"
#include "calibrate/fit.hpp"
#include "calibrate/pieces.hpp"
#include "core/error.hpp"

namespace rehearse::calibrate {

namespace {

// Links that carry so much less than was measured contradict it; less is the scatter of a measurement.
constexpr double contradiction = 1.05;
constexpr double least_fraction = 1e-4;
// Residuals of messages on a host that does nothing else are 0.02 to 0.1 (quick.hpp). One table does not say how far
// the next one is off: never less than that.
constexpr double least_error = 0.02;

/// What the simulation makes of one collective without any software's time, and of the messages that it waits for.
struct Wire {
    Seconds time;         // on links alone, with their latency
    double messages = 0;  // one after the other, between those that are fitted
    Bytes size;           // of one of them
    double alone = 0;     // seconds a byte of it on links of its own
};

/// Fits one kind of a machine's messages. Each question is put to the simulation with other figures of them.
class MessageFitter {
public:
    MessageFitter(Machine machine, const FileSamples& samples, Between between, const CollectiveTime& time)
        : machine_(std::move(machine)), samples_(samples), between_(between), time_(time) {
        for (const CollectiveRow& row : samples.collectives) {
            rows_.push_back(placed(row, between, machine_));
            check_place(rows_.back(), machine_, samples.where);
            if (row.kind == "all_reduce" || row.kind == "reduce_scatter" || row.kind == "reduce") sums_ = true;
        }
        if (sums_) {
            // So fast that it is nothing beside a message.
            side().reduce = {Bandwidth{1e18}, fmt::format("in the time of the messages: measured, {}", samples.where)};
        }
    }

    Machine fitted() {
        const double before = side().fraction.value;
        const PieceFit by_rounds = fit_pieces(samples_.messages);
        if (!by_rounds.grows)
            throw InputError(fmt::format("{}: the time of messages does not grow with their size", samples_.where));
        double fraction = fraction_of(by_rounds.pieces.back().rate);
        // That of links inside nodes is also of those to network cards, which were not measured: where collectives
        // reach less, their pieces say so.
        if (between_ == Between::devices && before <= 1) fraction = std::max(fraction, before);
        std::vector<MessageSample> messages;
        for (const CollectiveRow& row : rows_) messages.push_back(message_of(row, fraction));
        PieceFit fit = fit_pieces(messages);
        Messaging& result = side();
        result.fraction.value = fraction;
        result.pieces = std::move(fit.pieces);
        result.overhead.value = result.pieces.front().overhead;
        const double error = residual();
        const std::string source =
            fmt::format("measured, {}, {} samples, residual {:.1f} %", samples_.where, rows_.size(), 100 * error);
        for (MessagePiece& piece : result.pieces) piece.source = source;
        result.overhead.source = source;
        if (fraction != before) result.fraction.source = source;
        result.error = std::clamp(error, least_error, widest_error);
        return std::move(machine_);
    }

private:
    Messaging& side() { return between_ == Between::nodes ? machine_.across : machine_.inside; }

    Seconds ask(const CollectiveRow& row, double fraction, Seconds overhead = {},
                std::vector<MessagePiece> pieces = {}) {
        Messaging& asked = side();
        asked.fraction.value = fraction;
        asked.overhead.value = overhead;
        asked.pieces = std::move(pieces);
        return time_(machine_, row);
    }

    // Seconds that each byte of the whole adds, near the size of `row`.
    double slope(CollectiveRow row, double fraction) {
        const Seconds all = ask(row, fraction);
        row.bytes = row.bytes * 0.5;
        return (all - ask(row, fraction)).value / row.bytes.value;
    }

    // Of links' bandwidth that the largest collective reaches, whose messages go at `rate` one after the other.
    double fraction_of(Bandwidth rate) {
        const CollectiveRow& row =
            *std::ranges::max_element(rows_, {}, [](const CollectiveRow& each) { return message(each).size; });
        const RingRounds rounds = *ring_rounds(row.kind, row.ranks);
        const double measured = rounds.bus_factor() / rate.value;
        if (!(wire_of(row, 1).messages > 0)) {
            const bool switches = std::ranges::any_of(
                machine_.nodes, [](const NodeKind& kind) { return !kind.sums.rate.source.empty(); });
            throw InputError(
                fmt::format("{}: {}: on machine '{}' no message between {} is in its time{}", samples_.where,
                            name_of(row), machine_.name, word_of(between_),
                            switches ? ", as switches sum it at the rate of [node.switch_sums]: right would be a "
                                       "table of all-gathers, or bench nccl-table --compare"
                                     : ""));
        }
        const double most = slope(row, 1);
        if (most > contradiction * measured) {
            throw InputError(fmt::format(
                "{}: {}: large ones go at {} (busbw), but the links of machine '{}' that they go over carry {} at "
                "most: correct the links, or say between what the messages were (--between)",
                samples_.where, name_of(row), to_string(rate), machine_.name,
                to_string(Bandwidth{rate.value * measured / most})));
        }
        if (most >= measured) return 1;
        double low = least_fraction, high = 1;  // the slope falls as the fraction grows
        for (int halving = 0; halving < 60; ++halving) {
            const double middle = std::sqrt(low * high);
            (slope(row, middle) > measured ? low : high) = middle;
        }
        return high;
    }

    Wire wire_of(const CollectiveRow& row, double fraction) {
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

    /// What is left of a collective's time for each of its messages, with their time on links of their own.
    MessageSample message_of(const CollectiveRow& row, double fraction) {
        const auto [known, fresh] = wires_.try_emplace({row.kind, row.ranks, row.hosts, row.bytes.value});
        if (fresh) known->second = wire_of(row, fraction);
        const Wire& wire = known->second;
        if (!(wire.messages > 0)) return message(row);
        const double alone = wire.alone * wire.size.value;
        constexpr double instant = 1e-12;
        return {wire.size,
                Seconds{std::max((row.time - wire.time).value / wire.messages + alone, std::max(alone, instant))}};
    }

    static MessageSample message(const CollectiveRow& row) {
        return ring_rounds(row.kind, row.ranks)->message(row.bytes, row.time);
    }

    // One standard deviation of what is predicted over what was measured, whatever side it is off to.
    double residual() {
        std::map<std::tuple<std::string, std::int64_t, std::int64_t, double>, Seconds> predicted;
        std::vector<double> off;
        for (const CollectiveRow& row : rows_) {
            const auto [known, fresh] = predicted.try_emplace({row.kind, row.ranks, row.hosts, row.bytes.value});
            if (fresh) known->second = time_(machine_, row);
            off.push_back(std::abs(known->second / row.time - 1));
        }
        constexpr double of_a_median = 1.4826;  // normal errors: half of them are below 0.6745 deviations
        return of_a_median * median(off);
    }

    Machine machine_;
    const FileSamples& samples_;
    Between between_;
    const CollectiveTime& time_;
    std::vector<CollectiveRow> rows_;
    std::map<std::tuple<std::string, std::int64_t, std::int64_t, double>, Wire> wires_;
    bool sums_ = false;
};

}  // namespace

Machine with_messages(Machine machine, const FileSamples& samples, Between between, const CollectiveTime& time) {
    if (between == Between::nodes && node_count(machine) < 2)
        throw InputError(fmt::format("machine '{}' has one node: its messages are between devices", machine.name));
    return MessageFitter(std::move(machine), samples, between, time).fitted();
}

std::string not_met(const std::vector<RoundTrip>& trips) {
    constexpr double far = 0.1;
    const RoundTrip* worst = nullptr;
    std::size_t count = 0;
    for (const RoundTrip& trip : trips) {
        if (!(std::abs(trip.error()) > far)) continue;
        ++count;
        if (worst == nullptr || std::abs(trip.error()) > std::abs(worst->error())) worst = &trip;
    }
    if (worst == nullptr) return "";
    const CollectiveRow& row = worst->row;
    return fmt::format("{} of {} times are not met within 10 %, at worst {}: measured {}, predicted {}{}", count,
                       trips.size(), name_of(row), to_string(row.time), to_string(worst->predicted),
                       row.hosts > 1 && row.hosts < row.ranks && worst->error() > 0
                           ? "; what goes on inside nodes is in it: calibrate messages between devices first"
                           : "");
}

}  // namespace rehearse::calibrate
