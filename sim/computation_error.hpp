// SPDX-License-Identifier: Apache-2.0
// How far the computation of a step may be off, from the errors of its prices. What that, and the errors of messages,
// mean for the step is in predict/uncertainty.hpp.
#pragma once

#include <optional>

#include "core/machine.hpp"
#include "core/schedule.hpp"

namespace rehearse::sim {

/// The computation of a step in the rank class that computes longest.
struct Computation {
    Seconds time;
    /// Relative, one standard deviation: where each problem was measured by itself, errors of different problems are
    /// independent; where a model or a roofline speaks for many, they are one.
    double error = 0;
};
/// `machine` says what was measured, `priced` what it takes: the same machine, or the one with a framework's overheads
/// in its prices (predict/framework.hpp), whose host may be slower than the kernels and known less well.
Computation longest_computation(const Schedule& schedule, const Machine& machine, const Machine& priced);

/// By how much a step of that class differs from the next, a relative standard deviation: of each problem by what its
/// samples differed when it was measured, independently of the others. What was not measured is taken to differ as the
/// rest does; empty where that is more than half of the class's time.
std::optional<double> measured_noise(const Schedule& schedule, const Machine& machine);

}  // namespace rehearse::sim
