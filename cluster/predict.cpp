// SPDX-License-Identifier: Apache-2.0
#include "cluster/predict.hpp"

#include <fmt/format.h>

#include <set>

#include "core/error.hpp"
#include "core/timeline.hpp"
#include "sim/simulate.hpp"

namespace rehearse::cluster {

std::vector<SpeedPoint> predicted_points(const Network& network, const Machine& machine, const schedule::Plan& plan,
                                         schedule::Job job, std::int64_t most_devices, std::int64_t most_per_device) {
    std::set<std::int64_t> devices{most_devices};
    for (std::int64_t k = 1; k < most_devices; k *= 2) devices.insert(k);
    const Bytes capacity = class_of(machine, 0).memory.value;
    std::vector<SpeedPoint> points;
    Bytes smallest;
    for (const std::int64_t k : devices) {
        job.devices = k;
        for (std::int64_t batch = 1; batch <= most_per_device; batch *= 2) {
            job.batch_per_device = batch;
            const Schedule schedule = make_schedule(network, machine, plan, job);
            if (smallest == Bytes{}) smallest = schedule.memory_peak;
            if (schedule.memory_peak > capacity) break;
            const sim::Prediction prediction = sim::simulate(schedule, machine, {.mode = sim::Mode::folded});
            points.push_back({k, batch, summarize(prediction.timeline).step});
        }
    }
    if (points.empty()) {
        throw InfeasibleError(fmt::format("{} does not fit: one sample takes {} of a device's {}", network.name,
                                          to_string(smallest), to_string(capacity)));
    }
    return points;
}

}  // namespace rehearse::cluster
