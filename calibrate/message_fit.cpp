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
#include "calibrate/switch_fit.hpp"
#include "calibrate/told.hpp"
#include "core/error.hpp"

namespace rehearse::calibrate {

namespace {

// Links that carry so much less than was measured contradict it; less is the scatter of a measurement.
constexpr double contradiction = 1.05;
constexpr double least_fraction = 1e-4;

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
            const CollectiveRow each = placed(row, between, machine_);
            check_place(each, machine_, samples.where);
            const bool summed = between == Between::devices && summed_by_switches(machine_, each, time);
            (summed ? summed_ : rows_).push_back(each);
        }
    }

    Machine fitted() {
        if (!summed_.empty()) machine_ = with_switch_sums(machine_, summed_, time_, samples_.where);
        if (rows_.empty()) return std::move(machine_);  // its messages were not measured, nor was their error
        fit_messages();
        side().error = std::clamp(std::max(residual(rows_), residual(summed_)), least_error, widest_error);
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

    void fit_messages() {
        const bool sums = std::ranges::any_of(rows_, [](const CollectiveRow& row) {
            return row.kind == "all_reduce" || row.kind == "reduce_scatter" || row.kind == "reduce";
        });
        if (sums) {
            // So fast that it is nothing beside a message.
            side().reduce = {Bandwidth{1e18}, fmt::format("in the time of the messages: measured, {}", samples_.where)};
        }
        const Messaging before = side();
        std::vector<MessageSample> messages;
        for (const CollectiveRow& row : rows_) messages.push_back(message(row));
        const PieceFit by_rounds = fit_pieces(messages);
        const Bandwidth rate = by_rounds.pieces.back().rate;
        if (!tells_rate(messages, rate, by_rounds.error) && !tells_rate(messages, rate_of(before), by_rounds.error))
            return fit_overhead(before);
        if (!by_rounds.grows)
            throw InputError(fmt::format("{}: the time of messages does not grow with their size", samples_.where));
        double fraction = fraction_of(rate);
        // That of links inside nodes is also of those to network cards, which were not measured: where collectives
        // reach less, their pieces say so.
        if (between_ == Between::devices && before.fraction.value <= 1)
            fraction = std::max(fraction, before.fraction.value);
        std::ranges::transform(rows_, messages.begin(),
                               [&](const CollectiveRow& row) { return message_of(row, fraction); });
        PieceFit fit = fit_pieces(messages);
        const bool keeps_overhead = !tells_start(messages, fit.pieces.front().overhead, fit.error) &&
                                    !tells_start(messages, before.overhead.value, fit.error);
        if (keeps_overhead) {
            MessagePiece& first = fit.pieces.front();
            first.overhead = before.overhead.value;
            first.rate = rate_from(messages, first.overhead, first.up_to);
        }
        Messaging& result = side();
        result.fraction.value = fraction;
        result.pieces = std::move(fit.pieces);
        result.overhead.value = result.pieces.front().overhead;
        const std::string source = source_now();
        for (MessagePiece& piece : result.pieces) piece.source = source;
        if (!keeps_overhead) result.overhead.source = source;
        if (fraction != before.fraction.value) result.fraction.source = source;
    }

    std::string source_now() {
        return fmt::format("measured, {}, {} samples, residual {:.1f} %", samples_.where, rows_.size(),
                           100 * residual(rows_));
    }

    // What the machine says of a byte of the largest message that was measured.
    Bandwidth rate_of(const Messaging& before) {
        if (!before.pieces.empty()) return before.pieces.back().rate;
        return Bandwidth{1 / wire_of(largest(), before.fraction.value).alone};
    }

    // Of messages so small that they do not tell the rate: it stays what the machine says.
    void fit_overhead(const Messaging& before) {
        std::vector<double> starts;
        for (const CollectiveRow& row : rows_) {
            const Wire wire = wire_with_messages(row, before.fraction.value);
            starts.push_back(std::max(0.0, (row.time - wire.time).value / wire.messages));
        }
        side() = before;
        side().pieces.clear();
        side().overhead.value = Seconds{median(starts)};
        side().overhead.source = source_now();
    }

    const CollectiveRow& largest() const {
        return *std::ranges::max_element(rows_, {}, [](const CollectiveRow& each) { return message(each).size; });
    }

    Wire wire_with_messages(const CollectiveRow& row, double fraction) {
        const Wire wire = wire_of(row, fraction);
        if (wire.messages > 0) return wire;
        throw InputError(fmt::format("{}: {}: on machine '{}' no message between {} is in its time", samples_.where,
                                     name_of(row), machine_.name, word_of(between_)));
    }

    // Seconds that each byte of the whole adds, near the size of `row`.
    double slope(CollectiveRow row, double fraction) {
        const Seconds all = ask(row, fraction);
        row.bytes = row.bytes * 0.5;
        return (all - ask(row, fraction)).value / row.bytes.value;
    }

    // Of links' bandwidth that the largest collective reaches, whose messages go at `rate` one after the other.
    double fraction_of(Bandwidth rate) {
        const CollectiveRow& row = largest();
        const RingRounds rounds = *ring_rounds(row.kind, row.ranks);
        const double measured = rounds.bus_factor() / rate.value;
        static_cast<void>(wire_with_messages(row, 1));
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
    double residual(const std::vector<CollectiveRow>& rows) {
        if (rows.empty()) return 0;
        std::map<std::tuple<std::string, std::int64_t, std::int64_t, double>, Seconds> predicted;
        std::vector<double> off;
        for (const CollectiveRow& row : rows) {
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
    std::vector<CollectiveRow> rows_, summed_;  // by messages that are fitted, by switches
    std::map<std::tuple<std::string, std::int64_t, std::int64_t, double>, Wire> wires_;
};

}  // namespace

Machine with_messages(Machine machine, const FileSamples& samples, Between between, const CollectiveTime& time) {
    if (between == Between::nodes && node_count(machine) < 2)
        throw InputError(fmt::format("machine '{}' has one node: its messages are between devices", machine.name));
    return MessageFitter(std::move(machine), samples, between, time).fitted();
}

std::string kept(const Machine& before, const Machine& fitted, Between between) {
    const bool nodes = between == Between::nodes;
    const auto say = [&](std::string_view what, const std::string& figure, std::string_view sizes) {
        return fmt::format("{} between {} stays {}, as '{}' says: {} ones were measured, whose times do not tell it",
                           what, word_of(between), figure, before.name, sizes);
    };
    const Messaging &was = nodes ? before.across : before.inside, &is = nodes ? fitted.across : fitted.inside;
    const bool new_overhead = is.overhead.source != was.overhead.source;
    if (new_overhead && is.pieces.empty()) return say("the rate of messages", "the links'", "small");
    const bool new_pieces =
        !is.pieces.empty() && (was.pieces.empty() || is.pieces.front().source != was.pieces.front().source);
    if (new_pieces && !new_overhead) return say("the overhead of messages", to_string(is.overhead.value), "large");
    if (nodes) return "";
    const SwitchSums &had = before.nodes.front().sums, &has = fitted.nodes.front().sums;
    const bool new_latency = has.latency.source != had.latency.source, new_rate = has.rate.source != had.rate.source;
    if (new_latency && !new_rate) return say("the rate of switches' sums", to_string(has.rate.value), "small");
    if (new_rate && !new_latency) return say("the latency of switches' sums", to_string(has.latency.value), "large");
    return "";
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
