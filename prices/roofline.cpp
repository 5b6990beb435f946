// SPDX-License-Identifier: Apache-2.0
#include "prices/roofline.hpp"

namespace rehearse {

Bytes library_bytes(const Problem& problem, const DeviceClass& device) {
    const Bytes all = bytes_moved(problem.op, problem.pass, problem.type, problem.batch);
    const auto* norm = std::get_if<BatchNorm>(&problem.op);
    if (device.host || norm == nullptr || !norm->relu || problem.pass != Pass::backward_data) return all;
    double values = static_cast<double>(problem.batch);
    for (const std::int64_t size : output_shape(problem.op)) values *= static_cast<double>(size);
    const Bytes output = values * size_of(problem.type);
    constexpr Bytes bits{1.0 / 8};
    return norm->add ? all - output + values * bits : all - 2.0 * output;
}

RooflineTimes roofline_times(const Problem& problem, const DeviceClass& device) {
    RooflineTimes times;
    if (const auto peak = device.peak.find(problem.type); peak != device.peak.end())
        times.compute = flops(problem.op, problem.pass, problem.batch) / peak->second.value;
    if (device.memory_bandwidth.value > Bandwidth{0})
        times.memory = library_bytes(problem, device) / device.memory_bandwidth.value;
    return times;
}

}  // namespace rehearse
