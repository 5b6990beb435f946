// SPDX-License-Identifier: Apache-2.0
#include "core/error.hpp"
#include "predict/predict.hpp"
#include "search/search.hpp"

namespace rehearse::search {

std::int64_t nodes_of(const Machine& machine, std::int64_t devices) { return locate(machine, devices - 1).node + 1; }

Simulated simulated(const Network& network, const Machine& machine, schedule::Job job, const std::string& plan,
                    Bytes capacity, bool with_band) {
    Simulated result;
    try {
        const Schedule schedule = make_schedule(network, machine, schedule::parse_plan(plan), job);
        result.memory = schedule.memory_peak;
        if (result.memory > capacity) {
            result.refusal = "more memory than a device has, unlike its estimate";
            return result;
        }
        const predict::Step step = predict::step_of(schedule, machine, {.mode = sim::Mode::folded}, with_band);
        result.step = step.time;
        if (!with_band) return result;
        result.low = step.band.low;
        result.high = step.band.high;
    } catch (const InputError& error) {
        result.refusal = error.what();
    }
    return result;
}

}  // namespace rehearse::search
