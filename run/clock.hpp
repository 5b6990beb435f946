// SPDX-License-Identifier: Apache-2.0
// Each host has its own clock; a timeline has one.
#pragma once

#include <chrono>
#include <span>

#include "kernels/comm/communicator.hpp"

namespace rehearse::run {

/// A question to another rank: when it was asked and answered here, and what the clock there said, in seconds.
struct Probing {
    double asked = 0, there = 0, answered = 0;
};

/// How far the clock there is ahead: from the fastest answer, which leaves the least room for error (Cristian 1989).
double ahead_by(std::span<const Probing> probings);

/// How far this rank's clock is ahead of rank 0's, now. Collective.
double measure_ahead(const kernels::Communicator& world);

/// This rank's clock as a line to rank 0's, through two measurements: clocks drift apart by some us a second.
class Alignment {
public:
    Alignment(double first_time, double first_ahead, double last_time, double last_ahead);
    /// What rank 0's clock said when this one said `time`.
    double at_rank_zero(double time) const;

private:
    double first_time_, first_ahead_, slope_;
};

/// The steady clock in seconds.
double seconds(std::chrono::steady_clock::time_point time);
double now();

}  // namespace rehearse::run
