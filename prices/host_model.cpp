// SPDX-License-Identifier: Apache-2.0
#include "prices/host_model.hpp"

#include <algorithm>
#include <utility>

#include "prices/host_point.hpp"

namespace rehearse {

namespace {

constexpr std::size_t fewest = 8;  // kernels of a group that say something of others

// With lengths learned on five networks, this much wider bands hold nine in ten of five others' kernels.
constexpr double band = 1.3;

bool of_others(const MeasuredKernels& kernels) { return !kernels.sheet.host; }

}  // namespace

MeasuredKernels host_kernels(const DeviceClass& device, std::string_view group, DataType type) {
    DeviceSheet sheet{device.peak.at(type).value, device.memory_bandwidth.value, 1, 1, size_of(type)};
    sheet.host = true;
    MeasuredKernels kernels{std::string{group}, type, sheet, {}, host_experts(group), band, {}};
    for (const auto& [name, sample] : device.measured) {
        const Problem problem = parse_problem(name);
        if (problem.type != type || host_group(problem.op) != group || !host_point(problem, sheet)) continue;
        kernels.samples.push_back({problem, sample.median, sample.error});
        kernels.source = sample.source;
    }
    return kernels;
}

std::shared_ptr<const PriceModel> host_model(const DeviceClass& device) {
    const bool others = device.model != nullptr && std::ranges::any_of(device.model->kernels(), of_others);
    if (!device.host || others || device.measured.empty() || device.memory_bandwidth.value.value <= 0)
        return device.model;
    std::vector<MeasuredKernels> all;
    for (const auto& [type, peak] : device.peak) {
        for (const std::string_view group : host_groups()) {
            MeasuredKernels kernels = host_kernels(device, group, type);
            if (kernels.samples.size() >= fewest) all.push_back(std::move(kernels));
        }
    }
    if (all.empty()) return device.model;
    const std::vector<KernelFactor> factors =
        device.model == nullptr ? std::vector<KernelFactor>{} : device.model->factors();
    return std::make_shared<const PriceModel>("", std::move(all), "", factors);
}

}  // namespace rehearse
