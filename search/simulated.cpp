// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "core/error.hpp"
#include "predict/predict.hpp"
#include "search/search.hpp"

namespace rehearse::search {

DeviceMemory device_memory(const Machine& machine, std::int64_t devices) {
    const Bytes first = class_of(machine, 0).memory.value;
    DeviceMemory memory{first, first};
    if (machine.classes.size() == 1) return memory;
    for (std::int64_t device = 1; device < devices; ++device) {
        const Bytes own = class_of(machine, device).memory.value;
        memory = {std::min(memory.least, own), std::max(memory.most, own)};
    }
    return memory;
}

std::int64_t nodes_of(const Machine& machine, std::int64_t devices) { return locate(machine, devices - 1).node + 1; }

Simulated simulated(const Network& network, const Machine& machine, schedule::Job job, const std::string& plan,
                    Bytes most, bool with_band, const models::FrameworkProfile& framework) {
    Simulated result;
    try {
        predict::Job predicted{.network = network,
                               .machine = machine,
                               .plan = schedule::parse_plan(plan),
                               .batch = job.batch_per_device,
                               .global_batch = job.global_batch,
                               .precision = job.precision,
                               .optimizer = job.optimizer,
                               .mode = sim::Mode::folded};
        predict::follow(predicted, framework);
        const predict::Setup setup = predict::setup_of(predicted, job.devices);
        const predict::MemoryFit memory = predict::memory_of(setup);
        result.memory = memory.peak;
        const bool allowed = setup.schedule.memory_peak <= most;
        if (!memory.fits || !allowed) {
            result.refusal =
                fmt::format("more memory than {}, unlike its estimate", allowed ? "a device has" : "was allowed");
            return result;
        }
        const predict::StepTime step = predict::step_of(setup, with_band);
        result.step = step.time;
        if (!with_band) return result;
        result.low = step.band().low;
        result.high = step.band().high;
    } catch (const InputError& error) {
        result.refusal = error.what();
    }
    return result;
}

}  // namespace rehearse::search
