// SPDX-License-Identifier: Apache-2.0
#include "sim/band.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "prices/prices.hpp"
#include "sim/simulate.hpp"

namespace rehearse::sim {

namespace {

// Beyond so many ranks a step is not simulated three times.
constexpr std::int64_t most_simulated = 1 << 17;

struct Sum {
    Seconds time;
    Seconds measured;    // ... of it in problems that were measured by themselves
    Seconds together;    // sum of errors that are one
    double squares = 0;  // of errors that are independent of each other, seconds squared: those of what was measured
    double error() const { return time.value > 0 ? std::hypot(together.value, std::sqrt(squares)) / time.value : 0; }
};

using Counted = std::pair<const Problem*, int>;

// How often each problem is computed. Micro-batches of a layer are alike, and layers often.
std::map<std::string, Counted> problems_of(const RankClass& rank_class) {
    std::map<std::pair<int, Pass>, std::vector<Counted>> by_layer;  // updates: by bucket, from -2 down
    for (const Step& step : rank_class.steps) {
        const auto* compute = std::get_if<Compute>(&step.action);
        const auto* update = std::get_if<Update>(&step.action);
        const Problem* problem = problem_of(step);
        if (problem == nullptr) continue;
        const int other = update == nullptr ? -1 : -2 - update->bucket;
        std::vector<Counted>& known = by_layer[{compute != nullptr ? compute->layer : other, problem->pass}];
        const auto same = std::ranges::find_if(known, [&](const Counted& one) { return *one.first == *problem; });
        if (same == known.end()) {
            known.emplace_back(problem, 1);
        } else {
            ++same->second;
        }
    }
    std::map<std::string, Counted> by_name;
    for (const auto& [key, counted] : by_layer) {
        for (const auto& [problem, times] : counted) {
            auto& [first, count] = by_name[to_string(*problem)];
            first = problem;
            count += times;
        }
    }
    return by_name;
}

Sum sum_of(const RankClass& rank_class, const DeviceClass& device) {
    Sum sum;
    for (const auto& [name, counted] : problems_of(rank_class)) {
        const Price priced = price(*counted.first, device);
        const Seconds time = priced.time * static_cast<double>(counted.second);
        const Seconds error = time * priced.error;
        sum.time += time;
        if (device.measured.contains(name)) {
            sum.measured += time;
            sum.squares += error.value * error.value;
        } else {
            sum.together += error;
        }
    }
    return sum;
}

double relative_growth(Simulator& simulator, const Options& options, Seconds step) {
    return std::max(0.0, simulator.step(options) / step - 1);
}

Sum longest_computation(const Schedule& schedule, const Machine& machine) {
    Sum longest;
    for (std::size_t c = 0; c < schedule.classes.size(); ++c) {
        std::int64_t rank = 0;
        while (class_of(schedule, rank) != static_cast<int>(c)) ++rank;
        const Sum sum = sum_of(schedule.classes[c], class_of(machine, rank));
        if (sum.time > longest.time) longest = sum;
    }
    return longest;
}

/// How much longer the step is when its computation, and when its messages take longer by their 90 % error.
struct Growth {
    double of_computation = 0, of_messages = 0;
};

// From the step's parts: what is hidden stays hidden, what is exposed grows as the messages do.
Growth growth_by_parts(const Schedule& schedule, const Machine& machine, double error, Seconds step) {
    const Seconds computation = std::min(step, longest_computation(schedule, machine).time);
    const Price message{Seconds{1}, machine.across.error, {}};
    const double stretch = at(message, Quantile{prices::ninety_percent}).value - 1;
    return {(prices::reach(error) - 1) * (computation / step), stretch * ((step - computation) / step)};
}

Growth simulated_growth(const Schedule& schedule, Simulator& simulator, const Options& options, double error,
                        Seconds step) {
    Options computation = options, communication = options;
    computation.pace.resize(static_cast<std::size_t>(rehearse::ranks(schedule.mesh)), 1);
    for (double& pace : computation.pace) pace *= prices::reach(error);
    computation.links = communication.links = false;
    communication.messages = Quantile{prices::ninety_percent};
    Growth growth{.of_computation = relative_growth(simulator, computation, step)};
    if (rehearse::ranks(schedule.mesh) > 1) growth.of_messages = relative_growth(simulator, communication, step);
    return growth;
}

}  // namespace

double computation_error(const Schedule& schedule, const Machine& machine) {
    return longest_computation(schedule, machine).error();
}

std::optional<double> measured_noise(const Schedule& schedule, const Machine& machine) {
    const Sum sum = longest_computation(schedule, machine);
    if (sum.measured < sum.time * 0.5 || !(sum.measured > Seconds{})) return std::nullopt;
    return std::sqrt(sum.squares) / sum.measured.value;
}

Band band(const Schedule& schedule, const Machine& machine, const Options& options, Seconds step) {
    Simulator simulator{schedule, machine};
    return band(schedule, machine, options, step, simulator);
}

Band band(const Schedule& schedule, const Machine& machine, const Options& options, Seconds step,
          Simulator& simulator) {
    if (!(step > Seconds{0})) return {step, step};
    const double error = std::hypot(computation_error(schedule, machine), machine.in_situ.bias);
    const bool many = rehearse::ranks(schedule.mesh) > most_simulated;
    const Growth growth = many ? growth_by_parts(schedule, machine, error, step)
                               : simulated_growth(schedule, simulator, options, error, step);
    const double between_runs = prices::reach(machine.in_situ.noise) - 1;
    return prices::around(step, 1 + prices::independent({growth.of_computation, growth.of_messages, between_runs}));
}

}  // namespace rehearse::sim
