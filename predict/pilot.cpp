// SPDX-License-Identifier: Apache-2.0
#include "predict/pilot.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <memory>
#include <set>
#include <utility>

#include "core/error.hpp"
#include "predict/predict.hpp"
#include "predict/spread.hpp"
#include "sim/simulate.hpp"

namespace rehearse::predict {

namespace {

constexpr double least_scale = 0.01, most_scale = 10000;

// 99 % of a normal distribution lie within 2.576 standard deviations.
constexpr double wider = 2.576 / prices::ninety_percent;

// The simulation with what pilots say of computation and messages.
sim::Options with(const Setup& setup, const Anchor& anchor) {
    sim::Options options = setup.options;
    options.pace.resize(static_cast<std::size_t>(ranks(setup.schedule.mesh)), 1);
    for (double& pace : options.pace) pace *= anchor.computation;
    options.messages = ZScore{options.messages.value_or(nominal).value + anchor.messages};
    return options;
}

// The step of a setup with what pilots say. Copies are in prices that a simulator has made once: with them, another
// one.
Seconds step_with(const Setup& setup, sim::Simulator& simulator, const Anchor& anchor) {
    if (setup.framework.copies == Copies{}) return simulator.step(with(setup, anchor));
    const Setup here = anchored(setup, anchor);
    return sim::Simulator{here.schedule, here.simulated()}.step(here.options);
}

Seconds measured_step(const Pilot& pilot, const Setup& setup) {
    const std::int64_t batch = global_batch(setup.schedule);
    if (pilot.global_batch && *pilot.global_batch != batch) {
        throw InputError(
            fmt::format("--pilot: the one of {} devices was measured with {} samples a step, the prediction has {}; "
                        "give the --batch that was measured",
                        pilot.devices, *pilot.global_batch, batch));
    }
    if (!(pilot.samples_per_s > 0)) return pilot.step;
    return Seconds{setup.options.quorum * static_cast<double>(batch) / pilot.samples_per_s};
}

// A measured setup that is simulated again and again.
class Fitted {
public:
    explicit Fitted(const MeasuredSetup& pilot)
        : setup_(*pilot.setup), measured_(pilot.step), simulator_(setup_.schedule, setup_.simulated()) {}

    Seconds step(const Anchor& anchor) { return step_with(setup_, simulator_, anchor); }
    Seconds measured() const { return measured_; }
    std::int64_t devices() const { return setup_.devices; }
    std::int64_t nodes() const { return locate(setup_.machine, setup_.devices - 1).node; }

    /// Computation is as it takes to meet what was measured.
    Anchor met(Anchor anchor) {
        anchor.devices = devices();
        anchor.computation = fitted_scale(
            [&](double factor) {
                anchor.computation = factor;
                return step(anchor);
            },
            measured_);
        return anchor;
    }

private:
    const Setup& setup_;
    Seconds measured_;
    sim::Simulator simulator_;
};

// Where messages most likely are in their band while the smallest pilot stays met, and how well that is then known:
// Gauss-Newton from nominal prices, with the band as what was known before.
void move_messages(Anchor& anchor, Fitted& first, std::vector<std::unique_ptr<Fitted>>& larger) {
    constexpr int rounds = 4;
    constexpr double enough = 0.01, apart = 0.5;
    for (int round = 0; round < rounds; ++round) {
        double known = 1, pull = -anchor.messages;
        Anchor further = anchor;
        further.messages += apart;
        further = first.met(further);
        for (const auto& pilot : larger) {
            const Seconds here = pilot->step(anchor);
            const double error = distance_error(pilot->devices(), first.devices());
            const double slope = std::log(pilot->step(further) / here) / apart;
            known += slope * slope / (error * error);
            pull += slope * std::log(pilot->measured() / here) / (error * error);
        }
        const double before = anchor.messages;
        anchor.messages = std::clamp(before + pull / known, -prices::ninety_percent, prices::ninety_percent);
        anchor.messages_left = 1 / std::sqrt(known);
        anchor = first.met(anchor);
        if (std::abs(anchor.messages - before) < enough) break;
    }
}

// What a model that is right meets 99 times in 100.
prices::Interval<Seconds> likely(const StepTime& step) {
    return prices::around(step.time, std::pow(step.uncertainty.factor(), wider));
}

ComparedPilot compared(const Setup& setup, Seconds measured) {
    const StepTime step = step_of(setup);
    sim::Simulator simulator{setup.schedule, setup.simulated()};
    const sim::Prediction simulated = simulator.simulate(setup.options);
    const Summary parts = summarize(setup.schedule, simulated.timeline);
    ComparedPilot result{
        .devices = setup.devices, .measured = measured, .predicted = step.time, .likely = likely(step)};
    if (setup.anchor) result.anchored_on = setup.anchor->devices;
    const auto at = [&](double factor) { return step_with(setup, simulator, {.computation = factor}); };
    result.computation = fitted_scale(at, measured);
    result.met = at(result.computation);
    result.least = std::max(simulated.bounds.compute, simulated.bounds.wire);
    const Seconds others = parts.step - parts.exposed_comm;
    if (parts.exposed_comm > Seconds{} && measured > others) result.messages = (measured - others) / parts.exposed_comm;
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

const Anchor& Anchors::of(std::int64_t devices) const {
    const auto larger = std::ranges::find_if(pilots, [&](const Anchor& pilot) { return pilot.devices > devices; });
    return larger == pilots.begin() ? pilots.front() : *std::prev(larger);
}

Anchors fitted(const std::vector<MeasuredSetup>& pilots) {
    require(!pilots.empty(), "a pilot to anchor on");
    Fitted first{pilots.front()};
    Anchor anchor = first.met({});
    std::vector<std::unique_ptr<Fitted>> larger;
    for (const MeasuredSetup& pilot : pilots) {
        auto fit = std::make_unique<Fitted>(pilot);
        if (fit->nodes() > first.nodes()) larger.push_back(std::move(fit));
    }
    if (!larger.empty()) move_messages(anchor, first, larger);
    Anchors anchors{{anchor}};
    for (const auto& pilot : larger) anchors.pilots.push_back(pilot->met(anchor));
    return anchors;
}

Setup anchored(Setup setup, const Anchor& anchor) {
    setup.options = with(setup, anchor);
    if (setup.framework.copies != Copies{}) {
        const double before = setup.anchor ? setup.anchor->computation : 1;
        Framework framework = setup.framework;
        framework.copies = framework.copies * (1 / (before * anchor.computation));
        setup.priced = priced(setup.machine, setup.schedule, framework);
    }
    setup.anchor = anchor;
    return setup;
}

Piloted piloted(const Job& job) {
    if (job.pilots.empty()) return {};
    std::vector<Pilot> pilots = job.pilots;
    std::ranges::sort(pilots, {}, &Pilot::devices);
    std::vector<Setup> setups;
    std::vector<MeasuredSetup> measured;
    for (const Pilot& pilot : pilots) setups.push_back(setup_of(job, pilot.devices));
    for (std::size_t i = 0; i < pilots.size(); ++i) {
        measured.push_back({&setups[i], measured_step(pilots[i], setups[i])});
    }
    const Anchors smallest = fitted({measured.front()});
    Piloted result{fitted(measured), {}};
    for (std::size_t i = 0; i < pilots.size(); ++i) {
        result.compared.push_back(
            compared(i == 0 ? setups[i] : anchored(setups[i], smallest.pilots.front()), measured[i].step));
    }
    return result;
}

}  // namespace rehearse::predict
