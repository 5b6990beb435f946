// SPDX-License-Identifier: Apache-2.0
#include "calibrate/switch_fit.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "calibrate/fit.hpp"
#include "calibrate/pieces.hpp"
#include "calibrate/told.hpp"
#include "core/error.hpp"

namespace rehearse::calibrate {

namespace {

constexpr Seconds instant{1e-12};
// More than links carry by this contradicts them; less is the scatter of a measurement.
constexpr double contradiction = 1.05;

// Of each kind of node.
std::vector<SwitchSums*> switches_of(Machine& machine) {
    std::vector<SwitchSums*> all;
    for (NodeKind& kind : machine.nodes) {
        if (!kind.sums.rate.source.empty()) all.push_back(&kind.sums);
    }
    return all;
}

/// What a machine predicts with other switches, and with other messages beside them.
class Asked {
public:
    Asked(const Machine& machine, const CollectiveTime& time) : machine_(machine), time_(time) {}

    bool has_switches() { return !switches_of(machine_).empty(); }

    Seconds with(const CollectiveRow& row, Bandwidth rate, Seconds latency) {
        for (SwitchSums* sums : switches_of(machine_)) {
            sums->rate.value = rate;
            sums->latency.value = latency;
        }
        return time_(machine_, row);
    }

    Seconds with_messages_of(const CollectiveRow& row, Seconds overhead) {
        machine_.inside.pieces.clear();
        machine_.inside.overhead.value = overhead;
        return time_(machine_, row);
    }

private:
    Machine machine_;
    const CollectiveTime& time_;
};

// Of sums so small that they do not tell the rate.
Seconds start_with(const std::vector<MessageSample>& sums, Bandwidth rate) {
    std::vector<double> starts;
    for (const MessageSample& each : sums) starts.push_back((each.one_way - each.size / rate).value);
    return Seconds{std::max(0.0, median(starts))};
}

}  // namespace

bool summed_by_switches(const Machine& machine, const CollectiveRow& row, const CollectiveTime& time) {
    Asked ask{machine, time};
    if (row.kind != "all_reduce" || !ask.has_switches()) return false;
    const Bandwidth rate = reaches_switches(machine.nodes.front());
    return (ask.with(row, rate, Seconds{1}) - ask.with(row, rate, {})).value > 0.5 &&
           (ask.with_messages_of(row, Seconds{1}) - ask.with_messages_of(row, {})).value < 0.5;
}

// What is left of each of them is some times the latency, and bytes at the rate.
Machine with_switch_sums(Machine machine, const std::vector<CollectiveRow>& rows, const CollectiveTime& time,
                         const std::string& where) {
    const Bandwidth most = reaches_switches(machine.nodes.front());
    const Bandwidth slow = most * 0.1, slower = slow * 0.5;  // so that links beside them do not tell
    Asked ask{machine, time};
    std::vector<MessageSample> sums;
    for (const CollectiveRow& row : rows) {
        const Seconds once = ask.with(row, slow, {}), twice = ask.with(row, slower, {});
        const double latencies = (ask.with(row, slow, Seconds{1}) - once).value;
        const double bytes = (twice - once).value * slow.value;
        const Seconds known = once + once - twice;
        sums.push_back({Bytes{bytes / latencies}, std::max(instant, (row.time - known) * (1 / latencies))});
    }
    const SwitchSums before = *switches_of(machine).front();
    const bool one = of_one_size(sums);  // which cannot tell both
    const PieceFit fit = one ? line_from(sums, before.latency.value) : fit_pieces(sums, 1);
    MessagePiece line = fit.pieces.front();
    const bool keeps_rate = !tells_rate(sums, line.rate, fit.error) && !tells_rate(sums, before.rate.value, fit.error);
    const bool keeps_latency =
        one ? !keeps_rate
            : !tells_start(sums, line.overhead, fit.error) && !tells_start(sums, before.latency.value, fit.error);
    if (!fit.grows && !keeps_rate) {
        throw InputError(one ? fmt::format("{}: {}: one size was measured, in less time than the {} that the switches "
                                           "of machine '{}' take for a sum: give other sizes, too",
                                           where, name_of(rows.front()), to_string(before.latency.value), machine.name)
                             : fmt::format("{}: the time of all-reduces does not grow with their size", where));
    }
    if (keeps_rate) line = {{}, start_with(sums, before.rate.value), before.rate.value, {}};
    if (keeps_latency) line = {{}, before.latency.value, rate_from(sums, before.latency.value), {}};
    if (line.rate > most * contradiction) {
        throw InputError(fmt::format(
            "{}: switches would sum {} from each device, but its links carry {} on machine '{}': correct the links, or "
            "say between what the messages were (--between)",
            where, to_string(line.rate), to_string(most), machine.name));
    }
    line.rate = std::min(line.rate, most);
    const std::string source =
        fmt::format("measured, {}, {} samples, residual {:.1f} %", where, rows.size(), 100 * fit.error);
    for (SwitchSums* result : switches_of(machine)) {
        *result = {{line.rate, keeps_rate ? before.rate.source : source},
                   {line.overhead, keeps_latency ? before.latency.source : source}};
    }
    return machine;
}

}  // namespace rehearse::calibrate
