// SPDX-License-Identifier: Apache-2.0
#include "cluster/predict.hpp"

#include <fmt/format.h>

#include <optional>
#include <set>

#include "core/error.hpp"
#include "predict/predict.hpp"

namespace rehearse::cluster {

std::vector<SpeedPoint> predicted_points(const Network& network, const Machine& machine, const schedule::Plan& plan,
                                         const schedule::Job& job, std::int64_t most_devices,
                                         std::int64_t most_per_device, const std::set<std::int64_t>& wanted) {
    std::set<std::int64_t> devices = wanted;
    devices.insert(most_devices);
    for (std::int64_t k = 1; k < most_devices; k *= 2) devices.insert(k);

    predict::Job predicted{.network = network,
                           .machine = machine,
                           .plan = plan,
                           .precision = job.precision,
                           .optimizer = job.optimizer,
                           .mode = sim::Mode::folded,
                           .bands = false};
    std::vector<SpeedPoint> points;
    std::optional<predict::MemoryFit> smallest;
    for (const std::int64_t k : devices) {
        for (std::int64_t batch = 1; batch <= most_per_device; batch *= 2) {
            predicted.batch = batch;
            const predict::Setup setup = predict::setup_of(predicted, k);
            const predict::MemoryFit memory = predict::memory_of(setup);
            if (!smallest) smallest = memory;
            if (!memory.fits) break;
            Timeline timeline;
            points.push_back({k, batch, predict::point_of(predicted, setup, timeline).figures.time.step});
        }
    }
    if (points.empty()) {
        throw InfeasibleError(fmt::format("{} does not fit: one sample takes {} of a device's {}", network.name,
                                          to_string(smallest->peak), to_string(smallest->capacity)));
    }
    return points;
}

}  // namespace rehearse::cluster
