// SPDX-License-Identifier: Apache-2.0
#include "schedule/costs.hpp"

#include <algorithm>
#include <map>

#include "core/precision.hpp"
#include "prices/prices.hpp"
#include "schedule/mesh.hpp"

namespace rehearse::schedule {

std::vector<double> layer_costs(const Part& part, Precision precision, std::int64_t samples,
                                const DeviceClass* device) {
    if (device != nullptr && device->peak.empty() && device->measured.empty()) device = nullptr;
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

std::vector<std::vector<double>> costs_of_pieces(const Part& part, int chunks, const Schedule& schedule,
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
    for (std::size_t stage = 0; stage < schedule.stage_copies.size(); ++stage) {
        for (double& cost : costs[stage]) cost /= schedule.stage_copies[stage];  // each has every so many-th
    }
    for (int chunk = 1; chunk < chunks; ++chunk) {
        for (std::size_t stage = 0; stage < stages; ++stage) costs.push_back(costs[stage]);
    }
    return costs;
}

}  // namespace rehearse::schedule
