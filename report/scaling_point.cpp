// SPDX-License-Identifier: Apache-2.0
#include "report/scaling_point.hpp"

namespace rehearse::report {

picture::ScalingPoint scaling_point(const predict::Point& point) {
    const Seconds silent = point.figures.time.step, step = point.noisy ? point.noisy->mean : silent;
    const double longer = silent > Seconds{} ? step / silent : 1;
    return {.devices = static_cast<double>(point.figures.devices),
            .step_s = step.value,
            .low_s = point.band.low.value * longer,
            .high_s = point.band.high.value * longer,
            .samples_per_s = point.samples_per_s(),
            .efficiency = point.efficiency,
            .fits = point.memory.fits,
            .baseline = point.speedup == 1.0 && point.efficiency == 1.0};  // both: as many devices as the baseline
}

}  // namespace rehearse::report
