// SPDX-License-Identifier: Apache-2.0
#include "search/refusals.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/error.hpp"
#include "schedule/mesh.hpp"

namespace rehearse::search {

void check(const Request& request, const Machine& machine) {
    const auto at_least_1 = [](const char* option, std::int64_t value) {
        if (value < 1) throw InputError(fmt::format("{} {}: at least 1", option, value));
    };
    at_least_1("--top", request.simulated);
    at_least_1("--max-tensor", request.most.tensor);
    at_least_1("--max-expert", request.most.expert);
    at_least_1("--max-pipe", request.most.pipe);
    at_least_1("--max-chunks", request.variety.chunks);
    if (!request.job.global_batch || *request.job.global_batch < 1) {
        throw InputError("search: a global batch of at least 1 sample is needed");
    }
    if (*request.job.global_batch > schedule::most_samples) {
        throw InputError(fmt::format("search: a global batch of {} samples; a step has at most {}",
                                     *request.job.global_batch, schedule::most_samples));
    }
    if (request.devices.empty()) throw InputError("--devices: at least one number of devices is needed");
    for (const std::int64_t count : request.devices) {
        if (count < 1 || count > device_count(machine)) {
            throw InputError(fmt::format("--devices {}: {} has 1 to {}", count, machine.name, device_count(machine)));
        }
    }
    const Bytes largest = device_memory(machine, std::ranges::max(request.devices)).most;
    if (request.limits.memory && *request.limits.memory > largest) {
        throw InputError(fmt::format("--memory-limit {}: a device of {} has {}", to_string(*request.limits.memory),
                                     machine.name, to_string(largest)));
    }
    const bool of_training = request.limits.training || request.limits.node_hours;
    if (of_training && request.samples <= 0) {
        throw InputError("a limit of the whole training needs to know its samples: give --dataset (and --epochs)");
    }
}

std::string why_none(const Result& result) {
    const Counts& counts = result.counts;
    std::string why = fmt::format("no plan was found: of {} estimated", counts.screened);
    const std::int64_t beyond = counts.beyond + counts.missed;
    if (counts.too_large > 0 || beyond == 0) {
        why += fmt::format(" {} take too much memory (the smallest takes {} a device)", counts.too_large,
                           to_string(result.least_memory));
    }
    if (beyond > 0) {
        why += fmt::format("{} {} are beyond the limits of the training (their shortest step takes {})",
                           counts.too_large > 0 ? " and" : "", beyond, to_string(result.least_beyond));
    }
    for (const std::string& refusal : result.refusals) why += "\n  " + refusal;
    return why;
}

}  // namespace rehearse::search
