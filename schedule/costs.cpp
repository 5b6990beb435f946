// SPDX-License-Identifier: Apache-2.0
#include "schedule/costs.hpp"

#include <algorithm>
#include <map>

#include "core/precision.hpp"
#include "prices/prices.hpp"
#include "schedule/axes/hand_overs.hpp"
#include "schedule/mesh.hpp"
#include "schedule/ways.hpp"

namespace rehearse::schedule {

namespace {

/// Where nothing is known but operations: about as many as a processor's core does while it copies a byte.
constexpr double operations_per_byte = 10;

bool has_prices(const DeviceClass* device) {
    return device != nullptr && !(device->peak.empty() && device->measured.empty());
}

}  // namespace

std::vector<double> layer_costs(const Part& part, Precision precision, std::int64_t samples,
                                const DeviceClass* device) {
    if (!has_prices(device)) device = nullptr;
    std::vector<double> costs;
    for (const Layer& layer : part.network.layers) {
        double cost = 0;
        for (const Pass pass : {Pass::forward, Pass::backward_data, Pass::backward_weights}) {
            if (!has_pass(layer.op, pass)) continue;
            const Problem problem{layer.op, pass, samples, compute_type(precision, layer.op)};
            cost += device == nullptr ? flops(layer.op, pass).value : price(problem, *device).time.value;
        }
        costs.push_back(cost);
    }
    return costs;
}

std::vector<Places> places_of_copies(const Schedule& schedule, const Machine& machine) {
    std::vector<Places> copies(static_cast<std::size_t>(shards(schedule.mesh)));
    for (RankIndex rank{0}; rank < ranks(schedule.mesh); ++rank) {
        const StageIndex stage = stage_of(schedule, rank).stage;
        const DeviceClass* device = machine.classes.empty() ? nullptr : &rehearse::class_of(machine, rank);
        copies[static_cast<std::size_t>(shard_of(schedule.mesh, rank))].insert({stage, device});
    }
    return copies;
}

Places places_of(const Schedule& schedule, const Machine& machine) {
    Places all;
    if (machine.classes.size() < 2) {
        const DeviceClass* device = machine.classes.empty() ? nullptr : &rehearse::class_of(machine, 0);
        for (StageIndex stage{0}; stage < stages(schedule); ++stage) all.insert({stage, device});
        return all;
    }
    for (const Places& copy : places_of_copies(schedule, machine)) all.insert(copy.begin(), copy.end());
    return all;
}

namespace {

std::vector<std::vector<double>> computed_by_stages(const Part& part, const Schedule& schedule,
                                                    const Machine& machine) {
    const auto stages = static_cast<std::size_t>(rehearse::stages(schedule));
    std::map<const DeviceClass*, std::vector<double>> on_device;
    std::vector<std::vector<double>> costs(stages, std::vector<double>(part.network.layers.size()));
    for (const auto& [stage, device] : places_of(schedule, machine)) {
        const auto [known, fresh] = on_device.try_emplace(device);
        if (fresh) known->second = layer_costs(part, schedule.precision, micro_batch_size(schedule), device);
        std::vector<double>& worst = costs[static_cast<std::size_t>(stage)];
        std::ranges::transform(worst, known->second, worst.begin(), [](double a, double b) { return std::max(a, b); });
    }
    return costs;
}

}  // namespace

PieceCosts costs_of_pieces(const Part& part, const Plan& plan, const Schedule& schedule, const Machine& machine) {
    const Scatter scatter{.axis = "tensor", .parts = plan.scatter ? axis_size(schedule.mesh, "tensor") : 1};
    const std::vector<HandOver> handed = hand_overs(part, scatter);
    const std::vector<std::vector<double>> computed = computed_by_stages(part, schedule, machine);
    const double sample_bytes = size_of(compute_type(schedule.precision)).value * micro_batch_size(schedule);
    const bool priced = !machine.classes.empty() && has_prices(&rehearse::class_of(machine, 0));
    const std::vector<Way> ways =
        priced ? ways_of(schedule.mesh, schedule.stage_copies, plan.chunks > 1, machine) : std::vector<Way>{};
    const auto taken = [&](std::size_t stage, std::int64_t messages, std::int64_t elements) {
        const Bytes bytes{sample_bytes * static_cast<double>(elements)};
        return priced ? seconds(ways[stage], messages, bytes) : bytes.value * operations_per_byte;
    };
    PieceCosts costs;
    for (std::size_t piece = 0; piece < computed.size() * static_cast<std::size_t>(plan.chunks); ++piece) {
        const std::size_t stage = piece % computed.size();
        const double share = schedule.stage_copies.empty() ? 1 : 1.0 / schedule.stage_copies[stage];  // in turns
        costs.layers.push_back(computed[stage]);
        std::vector<double>&there = costs.handed.emplace_back(), &back = costs.returned.emplace_back();
        for (const HandOver& each : handed) {
            there.push_back(share * taken(stage, each.outputs, each.output_elements));
            back.push_back(share * taken(stage, each.gradients, each.gradient_elements));
        }
        for (double& cost : costs.layers.back()) cost *= share;
    }
    return costs;
}

}  // namespace rehearse::schedule
