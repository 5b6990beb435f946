// SPDX-License-Identifier: Apache-2.0
// How far a predicted step may be off, from the errors of what it is made of.
#pragma once

#include <optional>

#include "prices/interval.hpp"
#include "sim/simulate.hpp"

namespace rehearse::sim {

class Simulator;

using Band = prices::Interval<Seconds>;

/// Holds the measured step nine times in ten, if errors are normal and prices know theirs. Three parts, independent of
/// each other: prices of computations (where each problem was measured by itself, errors of different problems are
/// independent too; where a model or a roofline speaks for many, they are one) with the machine's bias in situ; prices
/// of messages, all off together; noise between runs. What the first two mean for the step is simulated, with each at
/// the end of its own band (prices/interval.hpp). `step` is the prediction with `options`.
Band band(const Schedule& schedule, const Machine& machine, const Options& options, Seconds step);
/// ... with what the simulator has made for the prediction.
Band band(const Schedule& schedule, const Machine& machine, const Options& options, Seconds step, Simulator& simulator);

/// Relative, one standard deviation, of all computations of the rank class that computes longest.
double computation_error(const Schedule& schedule, const Machine& machine);

/// By how much a step of that class differs from the next, a relative standard deviation: of each problem by what its
/// samples differed when it was measured, independently of the others. What was not measured is taken to differ as the
/// rest does; empty where that is more than half of the class's time.
std::optional<double> measured_noise(const Schedule& schedule, const Machine& machine);

}  // namespace rehearse::sim
