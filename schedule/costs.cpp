// SPDX-License-Identifier: Apache-2.0
#include "schedule/costs.hpp"

#include <algorithm>
#include <limits>
#include <map>

#include "core/precision.hpp"
#include "core/prices.hpp"
#include "schedule/memory.hpp"
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
            const Problem problem{layer.op, pass, samples, compute_type(precision)};
            cost += device == nullptr ? flops(layer.op, pass).value : price(problem, *device).time.value;
        }
        costs.push_back(cost);
    }
    return costs;
}

std::vector<Places> places_of_copies(const Schedule& schedule, const Machine& machine) {
    const int pipe = axis_index(schedule.mesh, "pipe");
    std::vector<Places> copies(static_cast<std::size_t>(shards(schedule.mesh)));
    for (std::int64_t rank = 0; rank < ranks(schedule.mesh); ++rank) {
        const int stage = pipe < 0 ? 0 : static_cast<int>(place_on(schedule.mesh, pipe, rank));
        const DeviceClass* device = machine.classes.empty() ? nullptr : &rehearse::class_of(machine, rank);
        copies[static_cast<std::size_t>(shard_of(schedule.mesh, rank))].insert({stage, device});
    }
    return copies;
}

Places places_of(const Schedule& schedule, const Machine& machine) {
    Places all;
    if (machine.classes.size() < 2) {
        const DeviceClass* device = machine.classes.empty() ? nullptr : &rehearse::class_of(machine, 0);
        for (int stage = 0; stage < axis_size(schedule.mesh, "pipe"); ++stage) all.insert({stage, device});
        return all;
    }
    for (const Places& copy : places_of_copies(schedule, machine)) all.insert(copy.begin(), copy.end());
    return all;
}

std::vector<std::vector<double>> costs_of_pieces(const Part& part, int chunks, const Schedule& schedule,
                                                 const Machine& machine) {
    const auto stages = static_cast<std::size_t>(axis_size(schedule.mesh, "pipe"));
    std::map<const DeviceClass*, std::vector<double>> on_device;
    std::vector<std::vector<double>> costs(stages, std::vector<double>(part.network.layers.size()));
    for (const auto& [stage, device] : places_of(schedule, machine)) {
        const auto [known, fresh] = on_device.try_emplace(device);
        if (fresh) known->second = layer_costs(part, schedule.precision, micro_batch_size(schedule), device);
        std::vector<double>& worst = costs[static_cast<std::size_t>(stage)];
        std::ranges::transform(worst, known->second, worst.begin(), [](double a, double b) { return std::max(a, b); });
    }
    for (int chunk = 1; chunk < chunks; ++chunk) {
        for (std::size_t stage = 0; stage < stages; ++stage) costs.push_back(costs[stage]);
    }
    return costs;
}

namespace {

/// Of the smallest device of each stage; without end where none is said.
std::vector<double> memory_of_stages(const Schedule& schedule, const Machine& machine) {
    std::vector<double> smallest(static_cast<std::size_t>(axis_size(schedule.mesh, "pipe")),
                                 std::numeric_limits<double>::infinity());
    for (const auto& [stage, device] : places_of(schedule, machine)) {
        if (device == nullptr || !(device->memory.value > Bytes{0})) continue;
        double& known = smallest[static_cast<std::size_t>(stage)];
        known = std::min(known, device->memory.value.value);
    }
    return smallest;
}

double outputs(const Layer& layer) { return static_cast<double>(elements(layer.output)); }

}  // namespace

bool all_fit(const Schedule& schedule, const std::vector<RankClass>& made, const Machine& machine) {
    const std::vector<double> room = memory_of_stages(schedule, machine);
    for (std::size_t s = 0; s < made.size(); ++s) {
        if (total(memory_use(schedule, made[s])).value > room[s]) return false;
    }
    return true;
}

Room room_for(const Part& part, const Schedule& schedule, const std::vector<RankClass>& made, const Machine& machine) {
    double kept = 0, weights = 0;
    for (const RankClass& stage : made) {
        const MemoryUse use = memory_use(schedule, stage);
        kept += (use.weights + use.master_weights + use.gradients + use.optimizer).value;
        weights += static_cast<double>(parameters(stage.part.network));
    }
    Room room{.needed = {}, .available = memory_of_stages(schedule, machine)};
    for (std::size_t s = 0; s < made.size(); ++s) {
        const MemoryUse use = memory_use(schedule, made[s]);
        double all = 0;
        for (const Layer& layer : made[s].part.network.layers) all += outputs(layer);
        const double each = all > 0 ? (use.activations + use.activation_gradients).value / all : 0;
        room.available[s] -= use.communication.value;
        std::vector<double>& needed = room.needed.emplace_back();
        for (const Layer& layer : part.network.layers) {
            needed.push_back(kept / weights * static_cast<double>(parameters(layer.op)) + each * outputs(layer));
        }
    }
    return room;
}

}  // namespace rehearse::schedule
