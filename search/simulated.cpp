// SPDX-License-Identifier: Apache-2.0
#include "core/error.hpp"
#include "search/search.hpp"
#include "sim/band.hpp"
#include "sim/simulator.hpp"

namespace rehearse::search {

std::int64_t nodes_of(const Machine& machine, std::int64_t devices) { return locate(machine, devices - 1).node + 1; }

Simulated simulated(const Network& network, const Machine& machine, schedule::Job job, const std::string& plan,
                    Bytes capacity) {
    Simulated result;
    try {
        const Schedule schedule = make_schedule(network, machine, schedule::parse_plan(plan), job);
        result.memory = schedule.memory_peak;
        if (result.memory > capacity) {
            result.refusal = "more memory than a device has, unlike its estimate";
            return result;
        }
        const sim::Options options{.mode = sim::Mode::folded};
        sim::Simulator simulator{schedule, machine};
        result.step = summarize(simulator.simulate(options).timeline).step;
        const sim::Band band = sim::band(schedule, machine, options, result.step, simulator);
        result.low = band.low;
        result.high = band.high;
    } catch (const InputError& error) {
        result.refusal = error.what();
    }
    return result;
}

}  // namespace rehearse::search
