// SPDX-License-Identifier: Apache-2.0
#include "prices/roofline.hpp"

#include <algorithm>

#include "prices/tile_model.hpp"

namespace rehearse {

namespace {

// What the processors keep of src (and, backward, diff_dst) between the statistics and their use: two blocks of 512
// threads a processor, 15 pixels a thread forward, 8 of both backward, four values of 2 bytes each.
Bytes kept_between(Pass pass, const DeviceClass& device) {
    if (device.tiles == nullptr) return Bytes{0};
    const double pixels = pass == Pass::forward ? 15 : 2 * 8;
    return Bytes{device.tiles->processors.value * 2 * 512 * pixels * 4 * 2};
}

}  // namespace

Bytes library_bytes(const Problem& problem, const DeviceClass& device) {
    const Bytes all = bytes_moved(problem.op, problem.pass, problem.type, problem.batch);
    const auto* norm = std::get_if<BatchNorm>(&problem.op);
    if (device.host || norm == nullptr || !norm->relu || norm->parts > 1) return all;
    double values = static_cast<double>(problem.batch);
    for (const std::int64_t size : output_shape(problem.op)) values *= static_cast<double>(size);
    const Bytes output = values * size_of(problem.type);
    Bytes spared{0};
    if (size_of(problem.type) == size_of(DataType::f16))
        spared = std::min(kept_between(problem.pass, device), (problem.pass == Pass::forward ? 1.0 : 2.0) * output);
    constexpr Bytes bits{1.0 / 8};
    if (problem.pass == Pass::backward_data) spared += norm->add ? output - values * bits : 2.0 * output;
    return all - spared;
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
