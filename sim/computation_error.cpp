// SPDX-License-Identifier: Apache-2.0
#include "sim/computation_error.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "prices/prices.hpp"

namespace rehearse::sim {

namespace {

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

Sum sum_of(const RankClass& rank_class, const DeviceClass& device, const DeviceClass& priced_device) {
    Sum sum;
    for (const auto& [name, counted] : problems_of(rank_class)) {
        const Price priced = price(*counted.first, priced_device);
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

Sum longest_sum(const Schedule& schedule, const Machine& machine, const Machine& priced) {
    Sum longest;
    for (std::size_t c = 0; c < schedule.classes.size(); ++c) {
        RankIndex rank{0};
        while (class_of(schedule, rank) != static_cast<int>(c)) ++rank;
        const Sum sum = sum_of(schedule.classes[c], class_of(machine, rank), class_of(priced, rank));
        if (sum.time > longest.time) longest = sum;
    }
    return longest;
}

}  // namespace

Computation longest_computation(const Schedule& schedule, const Machine& machine, const Machine& priced) {
    const Sum sum = longest_sum(schedule, machine, priced);
    return {sum.time, sum.error()};
}

std::optional<double> measured_noise(const Schedule& schedule, const Machine& machine) {
    const Sum sum = longest_sum(schedule, machine, machine);
    if (sum.measured < sum.time * 0.5 || !(sum.measured > Seconds{})) return std::nullopt;
    return std::sqrt(sum.squares) / sum.measured.value;
}

}  // namespace rehearse::sim
