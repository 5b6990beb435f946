// SPDX-License-Identifier: Apache-2.0
#include "calibrate/beyond_peak.hpp"

#include <fmt/format.h>

namespace rehearse::calibrate {

namespace {

// Times as fast as the peak lets it be; 0 where the device has no peak of the type.
double speed(const KernelSample& kernel, const DeviceClass& device) {
    const Problem& p = kernel.problem;
    const auto peak = device.peak.find(p.type);
    if (peak == device.peak.end()) return 0;
    return flops(p.op, p.pass, p.batch) / peak->second.value / kernel.time;
}

}  // namespace

std::string beyond_peak(std::span<const KernelSample> kernels, const DeviceClass& device) {
    constexpr double scatter = 1.05;  // a clock goes above what a data sheet says by less
    std::size_t count = 0;
    const KernelSample* worst = nullptr;
    for (const KernelSample& kernel : kernels) {
        if (!(speed(kernel, device) > scatter)) continue;
        ++count;
        if (worst == nullptr || speed(kernel, device) > speed(*worst, device)) worst = &kernel;
    }
    if (worst == nullptr) return "";
    return fmt::format(
        "{} of {} kernels took less time than their operations take at the peak of '{}', at most {} in {}: {:.2g} "
        "times as fast as {} in {}: were they run in another type (TF32, FP8), by Winograd's algorithm, or elsewhere?",
        count, kernels.size(), device.name, to_string(worst->problem), to_string(worst->time), speed(*worst, device),
        to_string(device.peak.at(worst->problem.type).value), to_string(worst->problem.type));
}

}  // namespace rehearse::calibrate
