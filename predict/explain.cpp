// SPDX-License-Identifier: Apache-2.0
#include "predict/explain.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "core/gradient_sums.hpp"
#include "predict/spread.hpp"
#include "prices/prices.hpp"
#include "prices/tile_model.hpp"

namespace rehearse::predict {

namespace {

struct Part {
    int steps = 0;
    Seconds total, spread;  // spread: sum of error * time
    std::set<std::string> sources;

    void add(Seconds time, double error, const std::string& source, int more_steps = 1) {
        steps += more_steps;
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

using Parts = std::map<std::pair<std::string, Basis>, Part>;

// What is moved, not computed: a collective, messages between stages or with parameter servers, samples.
std::optional<std::string> moved(const Action& action) {
    if (const auto* reduce = std::get_if<Communicate>(&action))
        return fmt::format("{} {}", pass_of(reduce->kind), to_string(reduce->algorithm));
    if (std::holds_alternative<Send>(action)) return "messages between stages";
    if (std::holds_alternative<PushPull>(action)) return "push to and pull from servers";
    if (const auto* load = std::get_if<Load>(&action)) return "reading from " + load->tier;
    return std::nullopt;
}

std::string reading_source(const Machine& machine, const Step& step) {
    const auto* load = std::get_if<Load>(&step.action);
    const auto tier = std::ranges::find(machine.storage, load->tier, &StorageTier::name);
    return tier == machine.storage.end()
               ? load->tier
               : fmt::format("{}: {} ({})", tier->name, to_string(tier->read.value), tier->read.source);
}

// Of the first rank's first step as it was simulated; where ranks trade with servers, the mean of its steps after the
// first quarter, which the step's own figure is of, too.
void add_moved(const Prediction& prediction, Parts& parts) {
    struct Moved {
        std::string what, source;
    };
    const Machine& machine = prediction.setup.simulated();
    std::map<std::string, Moved> of_step;
    for (const Step& step : prediction.setup.schedule.classes.at(0).steps) {
        const std::optional<std::string> what = moved(step.action);
        if (!what) continue;
        const bool reads = std::holds_alternative<Load>(step.action);
        of_step[step.name] = {*what, reads ? reading_source(machine, step) : messaging_source(machine)};
    }
    int first = 0, end = 1;
    if (workers_of_servers(prediction.timeline)) {
        for (const Event& event : prediction.timeline.events) end = std::max(end, event.iteration + 1);
        first = end / 4;
    }
    const double error = std::max(machine.inside.error, machine.across.error);
    for (const Event& event : prediction.timeline.events) {
        if (event.rank != 0 || event.iteration < first || event.iteration >= end) continue;
        const auto found = of_step.find(event.step);
        if (found == of_step.end()) continue;
        parts[{found->second.what, Basis::modelled}].add((event.end - event.start) * (1.0 / (end - first)), error,
                                                         found->second.source, event.iteration == first ? 1 : 0);
    }
}

}  // namespace

std::vector<Explained> explained(const Prediction& prediction) {
    const Schedule& schedule = prediction.setup.schedule;
    const Machine& machine = prediction.setup.simulated();
    Parts parts;
    const DeviceClass& device = class_of(machine, 0);
    const std::optional<Anchor>& anchor = prediction.setup.anchor;
    const double scale = anchor ? anchor->computation : 1;
    Seconds computed;
    const auto compute = [&](const Problem& problem, const std::string& what) {
        Price p = price(problem, device);
        p.time = p.time * scale;
        if (anchor) {
            p.error = 0;
            p.source = fmt::format("{:.3g} times, to meet the pilot: {}", scale, p.source);
        }
        computed += p.time;
        parts[{what, p.basis}].add(p.time, p.error, p.source);
    };
    const RankClass& first = schedule.classes.at(0);
    const std::vector<std::vector<Problem>> sums = gradient_sums(schedule, first);
    for (std::size_t i = 0; i < first.steps.size(); ++i) {
        const Problem* problem = problem_of(first.steps[i]);
        if (problem == nullptr) continue;
        compute(*problem, fmt::format("{} {}", kind_of(problem->op), to_string(problem->pass)));
        for (const Problem& sum : sums_beside(*problem, sums[i], device)) compute(sum, "sums of gradients");
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
    add_moved(prediction, parts);
    const Seconds step = prediction.points.back().figures.time.step;
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
