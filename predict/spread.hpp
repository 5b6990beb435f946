// SPDX-License-Identifier: Apache-2.0
// What no price knows: that frameworks differ, that cards of a kind differ, and that a run far from what was measured
// is less certain.
#pragma once

#include <cstdint>

#include "core/machine.hpp"
#include "prices/interval.hpp"

namespace rehearse::predict {

/// Two frameworks on one device differ by 5 % (the tables' own spread: Piz Daint's ReFrame and Sarus rows); so do two
/// versions of one. A standard deviation of the logarithm, as all of these.
inline constexpr double framework_error = 0.05;

/// Cards of a kind differ: by 0.6 % (median) and 2.7 % (p90) between the two of a kind that DeepBench has, which is a
/// standard deviation of 0.6 to 1.2 % of one.
inline constexpr double card_spread = 0.01;

/// How many times as long as one card the slowest of n takes, in the mean of many draws of cards (Elfving's formula for
/// the largest of n normal values: its z-score is that of (n - pi/8) / (n - pi/4 + 1)).
double slowest_of(double n);

/// By what a synchronous step on so many devices is longer than one whose devices all take what their prices say.
/// Prices by tiles were fitted on runs of whole nodes, which waited for the slowest of their cards already.
double waiting(std::int64_t devices, const DeviceClass& device);

/// What a step measured elsewhere on the same system says of a larger one: the spread of repeated runs and of cards,
/// and what each doubling of the devices brings that no step shows (jitter, input, other jobs). With both, nine in ten
/// of all anchored published rows lie in their bands; with the prices' and messages' errors alone it was six.
double distance_error(std::int64_t devices, std::int64_t measured_on);

/// The band of a figure that is at `ends` where its prices are at theirs, with an independent error of this standard
/// deviation (of the logarithm) on top.
template <typename Value>
prices::Interval<Value> with_error(Value figure, prices::Interval<Value> ends, double deviation) {
    const auto reach = [&](Value end) {
        return prices::independent_factors({end / figure, prices::log_reach(deviation)});
    };
    return {figure / reach(ends.low), figure * reach(ends.high)};
}

}  // namespace rehearse::predict
