// SPDX-License-Identifier: Apache-2.0
#include "calibrate/message_fit.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include "calibrate/collective_times.hpp"
#include "calibrate/fit.hpp"
#include "calibrate/message_wires.hpp"
#include "calibrate/pieces.hpp"
#include "calibrate/switch_fit.hpp"
#include "calibrate/told.hpp"
#include "core/error.hpp"

namespace rehearse::calibrate {

namespace {

// Next to none, a number for each rank: what a collective takes before bytes count.
CollectiveRow without_bytes(CollectiveRow row) {
    row.bytes = size_of(DataType::f32) * static_cast<double>(row.ranks);
    return row;
}

RingRounds rounds_of(const CollectiveRow& row) { return *ring_rounds(row.kind, row.ranks); }

bool has_sums(const std::vector<CollectiveRow>& rows) {
    return std::ranges::any_of(rows, [](const CollectiveRow& row) {
        return row.kind == "all_reduce" || row.kind == "reduce_scatter" || row.kind == "reduce";
    });
}

// The piece that a message of that size takes, of those that there are.
std::size_t piece_of(const std::vector<MessagePiece>& pieces, Bytes size) {
    std::size_t at = 0;
    while (at + 1 < pieces.size() && size > pieces[at].up_to) ++at;
    return at;
}

/// Fits one kind of a machine's messages. What a machine says of sizes that were not measured stays.
class MessageFitter {
public:
    /// `rows` have their hosts.
    MessageFitter(Machine machine, const std::vector<CollectiveRow>& rows, const std::string& where, Between between,
                  const CollectiveTime& time)
        : machine_(std::move(machine)), where_(where), between_(between), time_(time) {
        for (const CollectiveRow& row : rows) {
            const bool summed = between == Between::devices && summed_by_switches(machine_, row, time);
            (summed ? summed_ : rows_).push_back(row);
        }
    }

    Machine fitted() {
        if (!summed_.empty()) machine_ = with_switch_sums(machine_, summed_, time_, where_);
        if (rows_.empty()) return std::move(machine_);  // its messages were not measured, nor was their error
        const double before = side().error;
        fit_messages();
        const double measured = std::max({residual(rows_), residual(summed_), least_error});
        // What was not measured is as far off as it was.
        side().error = std::min(kept_some_ ? std::max(measured, before) : measured, widest_error);
        return std::move(machine_);
    }

private:
    Messaging& side() { return messaging_of(machine_, between_); }

    void fit_messages() {
        const Messaging before = side();
        const std::vector<MessageSample> messages = by_rounds();
        const double rounds = rounds_of(largest()).rounds;
        const PieceFit line = line_of(messages, time_(machine_, without_bytes(largest())) * (1 / rounds));
        const Bandwidth rate = line.pieces.back().rate;
        MessageWires wires{machine_, between_, time_, where_};
        const Wire of_largest = wires.wire_with_messages(largest(), before.fraction.value);
        const std::size_t last = piece_of(before.pieces, of_largest.size);
        const Bandwidth known = before.pieces.empty() ? Bandwidth{1 / of_largest.alone} : before.pieces[last].rate;
        if (!tells_rate(messages, rate, line.error) && !tells_rate(messages, known, line.error))
            return fit_overhead(before, last, wires);
        if (!line.grows)
            throw InputError(fmt::format("{}: the time of messages does not grow with their size", where_));
        if (has_sums(rows_)) {
            // So fast that it is nothing beside a message.
            side().reduce = {Bandwidth{1e18}, fmt::format("in the time of the messages: measured, {}", where_)};
        }
        fit_pieces_and_fraction(before, last, rate);
    }

    // `last`: of the machine's pieces the one that the largest message is in.
    void fit_pieces_and_fraction(const Messaging& before, std::size_t last, Bandwidth rate) {
        MessageWires wires{machine_, between_, time_, where_};
        const bool keeps_larger = last + 1 < before.pieces.size();
        double fraction = wires.fraction_of(largest(), rate);
        // That of links inside nodes is also of those to network cards, which were not measured, and any is also of
        // larger messages: where collectives reach less, their pieces say so.
        if ((between_ == Between::devices || keeps_larger) && before.fraction.value <= 1)
            fraction = std::max(fraction, before.fraction.value);
        std::vector<MessageSample> messages;
        for (const CollectiveRow& row : rows_) messages.push_back(wires.message_of(row, fraction));
        const std::size_t first =
            piece_of(before.pieces, std::ranges::min_element(messages, {}, &MessageSample::size)->size);
        const Seconds start =
            before.pieces.empty() ? before.overhead.value : std::max(Seconds{0}, before.pieces[first].overhead);
        PieceFit fit = line_of(messages, start);
        const bool keeps_overhead =
            !shows_start(messages, fit.pieces.front().overhead, fit.error) && !shows_start(messages, start, fit.error);
        if (keeps_overhead) {
            MessagePiece& piece = fit.pieces.front();
            piece.overhead = start;
            piece.rate = rate_from(messages, start, piece.up_to);
        }
        if (keeps_larger) fit.pieces.back().up_to = before.pieces[last].up_to;
        kept_some_ = keeps_overhead || keeps_larger;
        Messaging& result = side();
        result.fraction.value = fraction;
        if (!keeps_overhead) result.overhead.value = fit.pieces.front().overhead;
        result.pieces = fit.pieces;
        const auto at = [&](std::size_t i) { return before.pieces.begin() + static_cast<std::ptrdiff_t>(i); };
        if (keeps_overhead) result.pieces.insert(result.pieces.begin(), at(0), at(first));
        if (keeps_larger) result.pieces.insert(result.pieces.end(), at(last + 1), before.pieces.end());
        const std::string source = source_now();
        const auto fitted = result.pieces.begin() + static_cast<std::ptrdiff_t>(keeps_overhead ? first : 0);
        std::for_each_n(fitted, fit.pieces.size(), [&](MessagePiece& piece) { piece.source = source; });
        if (!keeps_overhead) result.overhead.source = source;
        if (fraction != before.fraction.value) result.fraction.source = source;
    }

    // Of messages so small that they do not tell the rate: it stays what the machine says, of them by the piece that
    // the largest is in, `last`, of larger ones by theirs.
    void fit_overhead(const Messaging& before, std::size_t last, MessageWires& wires) {
        const double fraction = before.fraction.value;
        std::vector<MessagePiece> pieces = before.pieces;
        pieces.erase(pieces.begin(), pieces.begin() + static_cast<std::ptrdiff_t>(last));
        const auto with = [&](const CollectiveRow& row, Seconds overhead) {
            if (!pieces.empty()) pieces.front().overhead = overhead;
            return wires.ask(row, fraction, overhead, pieces);
        };
        std::vector<double> starts;
        for (const CollectiveRow& row : rows_) {
            static_cast<void>(wires.wire_with_messages(row, fraction));
            const Seconds without = with(row, {});
            const double messages = (with(row, Seconds{1}) - without).value;
            starts.push_back(std::max(0.0, (row.time - without).value / messages));
        }
        const Seconds start{median(starts)};
        if (!pieces.empty()) pieces.front().overhead = start;
        kept_some_ = true;
        side().pieces = std::move(pieces);
        side().overhead.value = start;
        side().overhead.source = source_now();
    }

    std::vector<MessageSample> by_rounds() const {
        std::vector<MessageSample> messages;
        for (const CollectiveRow& row : rows_) messages.push_back(rounds_of(row).message(row.bytes, row.time));
        return messages;
    }

    // Of one size, `start` is known and the rate is told.
    PieceFit line_of(const std::vector<MessageSample>& messages, Seconds start) {
        if (!of_one_size(messages)) return fit_pieces(messages);
        PieceFit fit = line_from(messages, start);
        if (fit.grows) return fit;
        throw InputError(fmt::format(
            "{}: {}: of messages between {} one size was measured, in less time than the {} that machine '{}' says one "
            "takes without any bytes: give other sizes, too",
            where_, name_of(largest()), word_of(between_), to_string(start), machine_.name));
    }

    // Messages of which many were in flight do not show where they start, nor do those of one size.
    bool shows_start(const std::vector<MessageSample>& messages, Seconds start, double error) const {
        std::vector<MessageSample> alone;
        for (std::size_t i = 0; i < messages.size(); ++i) {
            if (!rows_[i].streamed) alone.push_back(messages[i]);
        }
        return !alone.empty() && !of_one_size(messages) && tells_start(alone, start, error);
    }

    const CollectiveRow& largest() const {
        return *std::ranges::max_element(
            rows_, {}, [](const CollectiveRow& each) { return rounds_of(each).message(each.bytes, each.time).size; });
    }

    std::string source_now() {
        return fmt::format("measured, {}, {} samples, residual {:.1f} %", where_, rows_.size(), 100 * residual(rows_));
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
    const std::string& where_;
    Between between_;
    const CollectiveTime& time_;
    std::vector<CollectiveRow> rows_, summed_;  // by messages that are fitted, by switches
    bool kept_some_ = false;                    // of the machine's figures of messages
};

}  // namespace

Machine with_messages(Machine machine, const FileSamples& samples, Between between, const CollectiveTime& time) {
    if (between == Between::nodes && node_count(machine) < 2)
        throw InputError(fmt::format("machine '{}' has one node: its messages are between devices", machine.name));
    std::vector<CollectiveRow> rows, alone;
    for (const CollectiveRow& row : samples.collectives) {
        rows.push_back(placed(row, between, machine, samples.where));
        check_place(rows.back(), machine, samples.where);
        if (!row.streamed) alone.push_back(rows.back());
    }
    const auto fitted = [&](const std::vector<CollectiveRow>& some) {
        return MessageFitter(machine, some, samples.where, between, time).fitted();
    };
    if (alone.size() == rows.size()) return fitted(rows);
    // What messages in flight hide is what one takes without any bytes, as the others say, or the machine.
    const Machine starts = alone.empty() ? machine : fitted(alone);
    for (CollectiveRow& row : rows) {
        if (row.streamed) row.time += time(starts, without_bytes(row));
    }
    return fitted(rows);
}

Seconds shown_by(const Machine& machine, const CollectiveRow& row, const CollectiveTime& time) {
    const Seconds whole = time(machine, row);
    return row.streamed ? whole - time(machine, without_bytes(row)) : whole;
}

}  // namespace rehearse::calibrate
