// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <stdexcept>

#include "core/error.hpp"
#include "predict/predict.hpp"
#include "schedule/mesh.hpp"
#include "search/search.hpp"

namespace rehearse::search {

namespace {

/// Whether from one stage to the next some copies of a pipeline cross nodes and others do not: folded mode takes each
/// such way as long as the longest (docs/explain/folding.md).
bool copies_go_unlike_ways(const Machine& machine, const Mesh& mesh) {
    const int pipe = axis_index(mesh, "pipe");
    if (pipe < 0) return false;
    const std::int64_t stages = size_of(mesh, pipe), apart = stride(mesh, pipe);
    std::map<std::int64_t, bool> crosses;  // by stage
    for (RankIndex rank{0}; rank < ranks(mesh); ++rank) {
        const std::int64_t stage = place_on(mesh, pipe, rank);
        const std::int64_t next = rank + (stage + 1 < stages ? apart : -stage * apart);
        const bool across = locate(machine, rank).node != locate(machine, next).node;
        if (crosses.try_emplace(stage, across).first->second != across) return true;
    }
    return false;
}

/// To ten digits: the clock of exact mode goes on from one simulation of a process to the next, so that further digits
/// are not of the plan, and would rank plans that do the same by what was simulated before them.
Seconds ten_digits(Seconds time) {
    if (!(time > Seconds{})) return time;
    const double scale = std::pow(10.0, 9 - std::floor(std::log10(time.value)));
    return Seconds{std::round(time.value * scale) / scale};
}

}  // namespace

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
                               .optimizer = job.optimizer};
        const bool as_predict =
            with_band || copies_go_unlike_ways(machine, schedule::make_mesh(predicted.plan, job.devices));
        if (!as_predict) predicted.mode = sim::Mode::folded;
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
        result.step = ten_digits(step.time);
        if (!with_band) return result;
        result.low = ten_digits(step.band().low);
        result.high = ten_digits(step.band().high);
    } catch (const InputError& error) {
        result.refusal = error.what();
    } catch (const std::logic_error& error) {  // a bug of ours in one plan is no reason to say nothing of the others
        result.refusal = fmt::format("{} (plan {} on {} devices)", error.what(), plan, job.devices);
    }
    return result;
}

}  // namespace rehearse::search
