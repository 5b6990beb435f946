// SPDX-License-Identifier: Apache-2.0
// What is to be said of messages that were fitted: which figures stay, and which times are not met.
#include <fmt/format.h>

#include <cmath>

#include "calibrate/message_fit.hpp"

namespace rehearse::calibrate {

namespace {

// What a source says of the rate of the largest messages; empty: the links and their fraction do.
std::string_view source_of_rate(const Messaging& of) {
    return of.pieces.empty() ? std::string_view{} : std::string_view{of.pieces.back().source};
}

}  // namespace

std::string kept(const Machine& before, const Machine& fitted, Between between) {
    const bool nodes = between == Between::nodes;
    const auto say = [&](std::string_view what, const std::string& figure, std::string_view sizes) {
        return fmt::format("{} between {} stays {}, as '{}' says: {} were measured, whose times do not tell it", what,
                           word_of(between), figure, before.name, sizes);
    };
    constexpr std::string_view small = "small ones", large = "large ones, or one size,";
    const Messaging &was = nodes ? before.across : before.inside, &is = nodes ? fitted.across : fitted.inside;
    const bool new_overhead = is.overhead.source != was.overhead.source;
    const bool new_rate = source_of_rate(is) != source_of_rate(was);
    if (new_overhead && !new_rate)
        return say("the rate of messages", is.pieces.empty() ? "the links'" : to_string(is.pieces.back().rate), small);
    if (new_rate && !new_overhead) return say("the overhead of messages", to_string(is.overhead.value), large);
    if (nodes) return "";
    const SwitchSums &had = before.nodes.front().sums, &has = fitted.nodes.front().sums;
    const bool new_latency = has.latency.source != had.latency.source, new_sums = has.rate.source != had.rate.source;
    if (new_latency && !new_sums) return say("the rate of switches' sums", to_string(has.rate.value), small);
    if (new_sums && !new_latency) return say("the latency of switches' sums", to_string(has.latency.value), large);
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
