// SPDX-License-Identifier: Apache-2.0
#include "predict/explain.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <utility>

#include "predict/spread.hpp"
#include "prices/prices.hpp"

namespace rehearse::predict {

namespace {

struct Part {
    int steps = 0;
    Seconds total, spread;  // spread: sum of error * time
    std::set<std::string> sources;

    void add(Seconds time, double error, const std::string& source) {
        ++steps;
        total += time;
        spread += time * error;
        sources.insert(source);
    }
};

std::string sources_of(const Part& part) {
    if (part.sources.size() == 1) return *part.sources.begin();
    return fmt::format("{} (and {} more)", *part.sources.begin(), part.sources.size() - 1);
}

std::string messaging_source(const Machine& machine) {
    const auto text = [](const char* where, const Messaging& m) {
        return fmt::format("{}: {} a message ({}), {:.3g} of the link ({})", where, to_string(m.overhead.value),
                           m.overhead.source, m.fraction.value, m.fraction.source);
    };
    return fmt::format("{}; {}", text("inside", machine.inside), text("across", machine.across));
}

std::string waiting_source(const DeviceClass& device) {
    std::string text = fmt::format(
        "cards of a kind differ by {:.1f} % (Sinha et al., SC22: five supercomputers); the slowest of all, by "
        "order statistics",
        100 * card_spread);
    if (!device.step_spread.source.empty()) {
        text += fmt::format("; a step differs from the next by {:.1f} % ({})", 100 * device.step_spread.value,
                            device.step_spread.source);
    }
    return text;
}

std::string crowding_source() {
    return fmt::format("{:.1f} % for each doubling of the cards that compute in a node, as of published rows",
                       100 * crowding);
}

}  // namespace

std::vector<Explained> explained(const Prediction& prediction) {
    const Schedule& schedule = prediction.setup.schedule;
    const Machine& machine = prediction.setup.simulated();
    std::map<std::pair<std::string, Basis>, Part> parts;
    const DeviceClass& device = class_of(machine, 0);
    const std::optional<Anchor>& anchor = prediction.setup.anchor;
    const double scale = anchor ? anchor->computation : 1;
    Seconds computed;
    for (const Step& step : schedule.classes.at(0).steps) {
        const Problem* problem = problem_of(step);
        if (problem == nullptr) continue;
        Price p = price(*problem, device);
        p.time = p.time * scale;
        if (anchor) {
            p.error = 0;
            p.source = fmt::format("{:.3g} times, to meet the pilot: {}", scale, p.source);
        }
        computed += p.time;
        parts[{fmt::format("{} {}", kind_of(problem->op), to_string(problem->pass)), p.basis}].add(p.time, p.error,
                                                                                                   p.source);
    }
    const double waiting = prediction.setup.waiting.front(), crowded = prediction.setup.crowded.front();
    if (crowded > 1) {
        parts[{"beside other cards of a node", Basis::modelled}].add(computed * (crowded - 1), 0, crowding_source());
        computed = computed * crowded;
    }
    if (waiting > 1) {
        parts[{"waiting for the slowest card", Basis::modelled}].add(computed * (waiting - 1), 0,
                                                                     waiting_source(device));
    }
    std::map<std::string, std::string> algorithms;
    for (const Step& step : schedule.classes.at(0).steps) {
        if (const auto* reduce = std::get_if<Communicate>(&step.action)) {
            algorithms[step.name] = fmt::format("{} {}", pass_of(reduce->kind), to_string(reduce->algorithm));
        }
    }
    const double comm_error = std::max(machine.inside.error, machine.across.error);
    for (const Event& event : prediction.timeline.events) {
        if (event.rank != 0 || event.iteration != 0 || !algorithms.contains(event.step)) continue;
        parts[{algorithms[event.step], Basis::modelled}].add(event.end - event.start, comm_error,
                                                             messaging_source(machine));
    }
    const Seconds step = summarize(prediction.timeline).step;
    std::vector<Explained> rows;
    for (const auto& [of, part] : parts) {
        const double error = part.total.value > 0 ? part.spread / part.total : 0;
        rows.push_back({of.first, part.steps, part.total, part.total / step, error, of.second, sources_of(part)});
    }
    std::ranges::sort(rows, std::greater{}, &Explained::total);
    return rows;
}

std::vector<BandPart> band_parts(const Prediction& prediction) {
    const Uncertainty& of = prediction.points.back().uncertainty;
    const std::optional<Anchor>& anchor = prediction.setup.anchor;
    const Machine& machine = prediction.setup.machine;
    const std::string doubling =
        fmt::format("{:.0f} % a doubling of the devices, as of published rows", 100 * doubling_error);
    const std::string repeated =
        fmt::format("{:.0f} % between a pilot and another run, as of published rows", 100 * run_error);
    std::vector<BandPart> parts{
        {"prices of computation", of.computation, "their errors, and the machine's bias in situ"},
        {"prices of messages", of.messages,
         anchor && anchor->messages_left < 1
             ? fmt::format("{:.2g} of their errors, as the pilots leave it", anchor->messages_left)
             : "their errors"},
        {"one run to the next", of.runs, anchor ? repeated : machine.in_situ.source},
        {"one framework to another", of.framework,
         "two frameworks on one device (Piz Daint), or what the profile says"},
        {"more devices than were measured", of.distance, doubling}};
    std::erase_if(parts, [](const BandPart& part) { return !(part.factor > 1); });
    std::ranges::stable_sort(parts, std::greater{}, &BandPart::factor);
    return parts;
}

}  // namespace rehearse::predict
