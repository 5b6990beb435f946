// SPDX-License-Identifier: Apache-2.0
#include "predict/pilot.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "core/error.hpp"
#include "predict/predict.hpp"
#include "predict/spread.hpp"
#include "sim/band.hpp"
#include "sim/simulate.hpp"

namespace rehearse::predict {

namespace {

constexpr double least_scale = 0.01, most_scale = 10000;

// 99 % of a normal distribution lie within 2.576 standard deviations.
constexpr double wider = 2.576 / prices::ninety_percent;

Seconds measured_step(const Pilot& pilot, const Schedule& schedule) {
    const std::int64_t batch = global_batch(schedule);
    if (pilot.global_batch && *pilot.global_batch != batch) {
        throw InputError(
            fmt::format("--pilot: the one of {} devices was measured with {} samples a step, the prediction has {}; "
                        "give the --batch that was measured",
                        pilot.devices, *pilot.global_batch, batch));
    }
    return pilot.samples_per_s > 0 ? Seconds{static_cast<double>(batch) / pilot.samples_per_s} : pilot.step;
}

ComparedPilot compared(const Job& job, const Pilot& pilot) {
    const Setup setup = setup_of(job, pilot.devices);
    sim::Simulator simulator{setup.schedule, setup.simulated()};
    const sim::Prediction simulated = simulator.simulate(setup.options);
    const Summary cold = summarize(setup.schedule, simulated.timeline);
    const sim::Band band = sim::band(setup.schedule, setup.machine, setup.options, cold.step, simulator);
    const auto step_with = [&](double factor) { return step_at(setup, job.framework, {.factor = factor}); };
    const auto far = [&](double factor) { return 1 + wider * (factor - 1); };
    ComparedPilot result{.devices = pilot.devices,
                         .measured = measured_step(pilot, setup.schedule),
                         .cold = cold.step,
                         .likely = {cold.step / far(cold.step / band.low), cold.step * far(band.high / cold.step)}};
    result.computation = fitted_scale(step_with, result.measured);
    result.met = step_with(result.computation);
    result.least = std::max(simulated.bounds.compute, simulated.bounds.wire);
    const Seconds others = cold.step - cold.exposed_comm;
    if (cold.exposed_comm > Seconds{} && result.measured > others) {
        result.messages = (result.measured - others) / cold.exposed_comm;
    }
    return result;
}

}  // namespace

void check(const std::vector<Pilot>& pilots) {
    const auto positive = [](double value) { return std::isfinite(value) && value > 0; };
    std::set<std::int64_t> devices;
    for (const Pilot& pilot : pilots) {
        if (pilot.devices < 1) throw InputError(fmt::format("--pilot: {} devices; at least 1", pilot.devices));
        if (!positive(pilot.samples_per_s) && !positive(pilot.step.value)) {
            throw InputError(fmt::format("--pilot: of {} devices: a rate or a time above 0", pilot.devices));
        }
        if (!devices.insert(pilot.devices).second) {
            throw InputError(fmt::format("--pilot: two of {} devices; give one, the median", pilot.devices));
        }
    }
}

double fitted_scale(const std::function<Seconds(double factor)>& step_with, Seconds step) {
    const auto excess = [&](double factor) { return (step_with(factor) - step).value; };
    double before = 1, above = excess(before);
    double factor = std::max(least_scale, step.value / (step.value + above));
    // Secants: a step is nearly a straight line over the factor; of one device that waits for nothing, through 0.
    for (int i = 0; i < 8; ++i) {
        const double now = excess(factor);
        if (std::abs(now) < 1e-4 * step.value || now == above) break;
        const double next = factor - now * (factor - before) / (now - above);
        before = factor;
        above = now;
        factor = std::clamp(next, least_scale, most_scale);
    }
    return factor;
}

bool ComparedPilot::is_met() const { return std::abs(met / measured - 1) < 1e-3; }

std::vector<ComparedPilot> compared_pilots(const Job& job) {
    std::vector<ComparedPilot> result;
    for (const Pilot& pilot : job.pilots) result.push_back(compared(job, pilot));
    std::ranges::sort(result, {}, &ComparedPilot::devices);
    return result;
}

Setup anchored(Setup setup, const Job& job, const Anchor& anchor) {
    const DeviceClass& device = setup.machine.classes.front();
    const double more = waiting(setup.devices, device) / waiting(anchor.devices, device);
    setup.priced = priced(setup.machine, setup.schedule, job.framework, {anchor.scale * more, 0});
    setup.anchor = anchor;
    return setup;
}

}  // namespace rehearse::predict
