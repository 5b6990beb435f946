// SPDX-License-Identifier: Apache-2.0
// What a predicted step's band is made of.
#pragma once

#include "core/units.hpp"
#include "prices/interval.hpp"

namespace rehearse::sim {
class Simulator;
}  // namespace rehearse::sim

namespace rehearse::predict {

struct Setup;

/// Independent parts of a band, each as the factor by which a step is longer or shorter than predicted nine times in
/// ten, were nothing else uncertain. What has one cause is in one part: prices of kernels are off together, and so are
/// those of messages (prices/interval.hpp).
struct Uncertainty {
    double computation = 1;  // prices of kernels, and how far the machine's are off inside training steps
    double messages = 1;     // prices of messages; of these what pilots leave open
    double runs = 1;         // one run to the next
    double framework = 1;    // one framework to another
    double distance = 1;     // more devices than were measured
    double factor() const { return prices::independent_factors({computation, messages, runs, framework, distance}); }
};

/// A step and how well it is known.
struct StepTime {
    Seconds time;
    Uncertainty uncertainty{};
    prices::Interval<Seconds> band() const { return prices::around(time, uncertainty.factor()); }
};

/// Returns the step of the setup and its uncertainty, as `simulator` (of the same schedule and machine) has it: two
/// more simulations, with kernels and with messages at the ends of their bands. Beyond 131,072 ranks from the step's
/// parts instead.
Uncertainty uncertainty_of(const Setup& setup, sim::Simulator& simulator, Seconds step);

/// Returns the step alone. InputError as sim::simulate.
StepTime step_of(const Setup& setup, bool with_band = true);

}  // namespace rehearse::predict
