// SPDX-License-Identifier: Apache-2.0
#include "core/figures.hpp"

#include "core/mesh.hpp"
#include "core/methods/servers.hpp"
#include "core/op.hpp"

namespace rehearse {

StepFigures figures_of(const Schedule& schedule, const Summary& time) {
    StepFigures figures;
    figures.devices = all_devices(schedule);
    figures.global_batch = global_batch(schedule);
    figures.time = time;
    for (const Pass pass : {Pass::forward, Pass::backward_data, Pass::backward_weights}) {
        figures.work += flops(schedule.network, pass, figures.global_batch);
    }
    figures.memory = schedule.memory_peak;
    return figures;
}

double Staleness::mean() const {
    double count = 0, sum = 0;
    for (std::size_t i = 0; i < updates.size(); ++i) {
        count += static_cast<double>(updates[i]);
        sum += static_cast<double>(i) * static_cast<double>(updates[i]);
    }
    return count > 0 ? sum / count : 0;
}

}  // namespace rehearse
