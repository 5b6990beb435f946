// SPDX-License-Identifier: Apache-2.0
#include "cli/cluster_picture.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "cluster/report.hpp"

namespace rehearse::cli {

picture::Gantt gantt_of(const std::vector<cluster::Job>& jobs, const cluster::Outcome& outcome,
                        const std::string& machine) {
    const cluster::Figures f = figures(outcome);
    picture::Gantt gantt{
        .title = fmt::format("{}: {} jobs on {} devices of {}", to_string(outcome.options.policy), jobs.size(),
                             outcome.options.devices, machine),
        .subtitle = fmt::format("{} complete{}, devices {:.0f} % in use; pale: restarts", f.complete,
                                f.complete > 0 ? fmt::format(", {} in the mean", to_string(f.mean_completion)) : "",
                                100 * f.utilisation),
        .lanes = static_cast<std::size_t>(outcome.options.devices)};
    for (const cluster::Job& job : jobs) {
        if (std::ranges::find(gantt.kinds, job.model) == gantt.kinds.end()) gantt.kinds.push_back(job.model);
    }
    for (const cluster::Span& span : outcome.spans) {
        const cluster::Job& job = jobs[static_cast<std::size_t>(span.job)];
        const auto kind = std::ranges::find(gantt.kinds, job.model) - gantt.kinds.begin();
        for (std::size_t i = 0; i < span.devices.size();) {
            std::size_t end = i + 1;
            while (end < span.devices.size() && span.devices[end] == span.devices[end - 1] + 1) ++end;
            picture::GanttBar bar{.first = static_cast<double>(span.devices[i]),
                                  .lanes = static_cast<double>(end - i),
                                  .color = static_cast<std::size_t>(kind),
                                  .text = job.name};
            bar.title = fmt::format("{}: {} devices, batch {}", job.name, span.share.devices, span.share.batch);
            if (span.idle.value > 0) {
                bar.start = span.start.value;
                bar.end = (span.start + span.idle).value;
                bar.pale = true;
                gantt.bars.push_back(bar);
                bar.pale = false;
            }
            bar.start = (span.start + span.idle).value;
            bar.end = span.end.value;
            gantt.bars.push_back(bar);
            i = end;
        }
    }
    return gantt;
}

}  // namespace rehearse::cli
