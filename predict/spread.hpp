// SPDX-License-Identifier: Apache-2.0
// What no price knows: that frameworks differ, that cards of a kind differ, and that a run far from what was measured
// is less certain.
#pragma once

#include <cstdint>
#include <vector>

#include "core/machine.hpp"
#include "core/schedule.hpp"

namespace rehearse::predict {

/// Two frameworks on one device differ by 5 % (the tables' own spread: Piz Daint's ReFrame and Sarus rows); so do two
/// versions of one. A standard deviation of the logarithm, as all of these.
inline constexpr double framework_error = 0.05;

/// A measured step says of another run of the same so much: the spread of repeated runs and of cards.
inline constexpr double run_error = 0.05;

/// What each doubling of the devices brings that no step on fewer of them shows (jitter, input, other jobs).
inline constexpr double doubling_error = 0.03;

/// Cards of a kind differ: by 8 % on average, outliers apart, over 90 % of the GPUs of Summit, Vortex, Longhorn,
/// Frontera and Corona (Sinha et al., SC22, arXiv 2208.11035). Taken as what lies between a box plot's whiskers, 5.4
/// standard deviations of a normal, that is 1.5 %. Others: 5 % between the best and the worst of eight (Bekman), 2.85
/// standard deviations, is 1.75 %; the two cards of a kind that DeepBench has differ by 0.6 % (median) and 2.7 % (p90),
/// 0.6 to 1.2 %.
inline constexpr double card_spread = 0.015;

/// How many times as long as one card the slowest of n takes, in the mean of many draws of cards; or, of a step that
/// waits for fewer than all, the slowest of the `waited` fastest (Elfving's formula for order statistics of n normal
/// values: the z-score of the r-th smallest is that of (r - pi/8) / (n - pi/4 + 1)).
/// `spread`: one standard deviation, relative to a card's time.
double slowest_of(double n, double waited, double spread = card_spread);
inline double slowest_of(double n) { return slowest_of(n, n); }

/// Cards that the prices of this device were measured beside, so that they contain the slowest of these and what the
/// cards of a node take from each other: eight where prices are by tiles (fitted on steps of nodes of eight), those of
/// a node where they were measured inside training steps and held against them ([in_situ]); else one, by itself. Prices
/// of a profile (calibrate --trace) count as of one, too: it does not say how many of its ranks shared a node.
std::int64_t cards_of_prices(const Machine& machine, const DeviceClass& device);

/// By rank, how many times as long as its price computation takes because a step waits for the slowest card: cards of a
/// kind differ, and the steps of one differ from each other (DeviceClass::step_spread), independently. Of the ranks
/// that wait for each other (all, or with servers those of a group), those on one class of device; of these the share
/// `quorum`.
std::vector<double> waiting(const Schedule& schedule, const Machine& machine, double quorum);

/// Cards of a node that compute at the same time slow each other, by so much with each doubling of these cards: the
/// median of 168 anchored rows inside a node of the published systems that are not held out (Azure's Horovod and
/// ParaDL's logs 1.2 %, NVIDIA's TensorFlow 1 and 2 1.2 and 1.0 %), all of GPUs. Between nodes the same rows show none.
/// The size is measured, the cause is not: assumed are power, air and memory of the host that cards share, and sums
/// that take multiprocessors and memory from the computation that they hide behind.
inline constexpr double crowding = 0.011;

/// How many times as long as its price a card computes where so many cards of its node do, if that price was measured
/// beside so many.
double beside(std::int64_t cards, std::int64_t measured_beside = 1);

/// By rank, how many times as long as its price computation takes because other cards of its node compute for the same
/// job, beyond those that prices contain (cards_of_prices). Cards of all classes count, as they share what a node has;
/// those of the fullest node of a class say how slow the class is. Processors (DeviceClass::host) are no cards: they
/// neither count nor are slowed.
std::vector<double> crowded(const Schedule& schedule, const Machine& machine);

/// Returns log2 of how many times as many devices there are as something was measured on; 0 where there are fewer.
double doublings(std::int64_t devices, std::int64_t measured_on);

/// What a step measured elsewhere on the same system says of a larger one. With both errors, nine in ten of all
/// anchored published rows lie in their bands; with the messages' errors alone it was six.
double distance_error(std::int64_t devices, std::int64_t measured_on);

}  // namespace rehearse::predict
