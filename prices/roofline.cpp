// SPDX-License-Identifier: Apache-2.0
#include "prices/roofline.hpp"

namespace rehearse {

RooflineTimes roofline_times(const Problem& problem, const DeviceClass& device) {
    RooflineTimes times;
    if (const auto peak = device.peak.find(problem.type); peak != device.peak.end())
        times.compute = flops(problem.op, problem.pass, problem.batch) / peak->second.value;
    if (device.memory_bandwidth.value > Bandwidth{0})
        times.memory =
            bytes_moved(problem.op, problem.pass, problem.type, problem.batch) / device.memory_bandwidth.value;
    return times;
}

}  // namespace rehearse
