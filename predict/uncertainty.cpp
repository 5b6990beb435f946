// SPDX-License-Identifier: Apache-2.0
#include "predict/uncertainty.hpp"

#include <algorithm>
#include <cmath>

#include "predict/prediction.hpp"
#include "predict/spread.hpp"
#include "prices/prices.hpp"
#include "sim/computation_error.hpp"
#include "sim/simulate.hpp"

namespace rehearse::predict {

namespace {

// Beyond so many ranks a step is not simulated three times.
constexpr std::int64_t most_simulated = 1 << 17;

double growth(sim::Simulator& simulator, sim::Options options, Seconds step) {
    options.links = false;
    return std::max(1.0, simulator.step(options) / step);
}

sim::Computation computation_of(const Setup& setup) {
    return sim::longest_computation(setup.schedule, setup.machine, setup.simulated());
}

double computation_error(const Setup& setup) {
    return std::hypot(computation_of(setup).error, setup.machine.in_situ.bias);
}

// What is hidden stays hidden, what is exposed grows as messages do.
void add_by_parts(Uncertainty& uncertainty, const Setup& setup, Seconds step) {
    const Seconds computation = std::min(step, computation_of(setup).time);
    uncertainty.computation = 1 + (prices::reach(computation_error(setup)) - 1) * (computation / step);
    const Price message{Seconds{1}, setup.machine.across.error, {}};
    const double stretch = at(message, ZScore{prices::ninety_percent}).value - 1;
    uncertainty.messages = 1 + stretch * ((step - computation) / step);
}

void add_simulated(Uncertainty& uncertainty, const Setup& setup, sim::Simulator& simulator, Seconds step) {
    if (!setup.anchor) {
        const double error = computation_error(setup);
        sim::Options slow = setup.options;
        slow.pace.resize(static_cast<std::size_t>(ranks(setup.schedule.mesh)), 1);
        for (double& pace : slow.pace) pace *= prices::reach(error);
        uncertainty.computation = growth(simulator, slow, step);
    }
    if (ranks(setup.schedule.mesh) == 1) return;
    const double left = setup.anchor ? setup.anchor->messages_left : 1;
    sim::Options far = setup.options;
    far.messages = ZScore{setup.options.messages.value_or(nominal).value + prices::ninety_percent * left};
    uncertainty.messages = growth(simulator, far, step);
}

}  // namespace

Uncertainty uncertainty_of(const Setup& setup, sim::Simulator& simulator, Seconds step) {
    Uncertainty uncertainty;
    if (!(step > Seconds{})) return uncertainty;
    if (!setup.anchor && ranks(setup.schedule.mesh) > most_simulated) {
        add_by_parts(uncertainty, setup, step);
    } else {
        add_simulated(uncertainty, setup, simulator, step);
    }
    const std::int64_t devices = ranks(setup.schedule.mesh);
    if (setup.anchor) {
        uncertainty.runs = prices::log_reach(run_error);
        uncertainty.distance = prices::log_reach(doubling_error * doublings(devices, setup.anchor->devices));
        return uncertainty;
    }
    uncertainty.runs = prices::reach(setup.machine.in_situ.noise);
    if (setup.machine.in_situ.source.empty()) uncertainty.framework = prices::log_reach(setup.framework.error);
    const std::int64_t measured = cards_of_prices(setup.machine, class_of(setup.machine, 0));
    uncertainty.distance = prices::log_reach(doubling_error * doublings(devices, measured));
    return uncertainty;
}

StepTime step_of(const Setup& setup, bool with_band) {
    sim::Simulator simulator{setup.schedule, setup.simulated()};
    StepTime step{.time = simulator.step(setup.options)};
    if (with_band) step.uncertainty = uncertainty_of(setup, simulator, step.time);
    return step;
}

}  // namespace rehearse::predict
