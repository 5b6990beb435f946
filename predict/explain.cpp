// SPDX-License-Identifier: Apache-2.0
#include "predict/explain.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <utility>

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

}  // namespace

std::vector<Explained> explained(const Prediction& prediction) {
    const Schedule& schedule = prediction.setup.schedule;
    const Machine& machine = prediction.setup.simulated();
    std::map<std::pair<std::string, Basis>, Part> parts;
    const DeviceClass& device = class_of(machine, 0);
    for (const Step& step : schedule.classes.at(0).steps) {
        const Problem* problem = problem_of(step);
        if (problem == nullptr) continue;
        const Price p = price(*problem, device);
        parts[{fmt::format("{} {}", kind_of(problem->op), to_string(problem->pass)), p.basis}].add(p.time, p.error,
                                                                                                   p.source);
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

}  // namespace rehearse::predict
