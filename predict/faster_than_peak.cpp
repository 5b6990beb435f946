// SPDX-License-Identifier: Apache-2.0
#include "predict/faster_than_peak.hpp"

#include <map>
#include <utility>

#include "sim/check/bounds.hpp"

namespace rehearse::predict {

std::vector<FasterThanPeak> faster_than_peak(const Schedule& schedule, const Machine& machine) {
    constexpr double deviations = 3;
    std::map<std::pair<std::string, std::string>, FasterThanPeak> found;  // by device and problem
    for (const DeviceClass& device : machine.classes) {
        if (device.measured.empty()) continue;
        for (const RankClass& rank_class : schedule.classes) {
            for (const Step& step : rank_class.steps) {
                const Problem* problem = problem_of(step);
                if (problem == nullptr) continue;
                const std::string name = to_string(*problem);
                const auto sample = device.measured.find(name);
                if (sample == device.measured.end() || found.contains({device.name, name})) continue;
                const Measured& measured = sample->second;
                const Seconds least = sim::least_time(*problem, device);
                if (measured.median * (1 + deviations * measured.error) >= least) continue;
                const auto peak = device.peak.find(problem->type);
                const std::string source = peak == device.peak.end() ? "" : peak->second.source;
                found.emplace(std::pair{device.name, name},
                              FasterThanPeak{name, device.name, measured.source, source, measured.median, least});
            }
        }
    }
    std::vector<FasterThanPeak> result;
    for (auto& [key, one] : found) result.push_back(std::move(one));
    return result;
}

}  // namespace rehearse::predict
