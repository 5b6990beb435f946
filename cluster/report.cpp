// SPDX-License-Identifier: Apache-2.0
#include "cluster/report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <tuple>

namespace rehearse::cluster {

Figures figures(const Outcome& outcome) {
    Figures figures;
    std::vector<double> completions;
    for (const JobResult& job : outcome.jobs) {
        figures.restarts += job.restarts;
        if (job.turned_away) {
            ++figures.turned_away;
        } else if (job.end) {
            ++figures.complete;
            completions.push_back((*job.end - job.ready).value);
            figures.mean_completion += *job.end - job.ready;
        } else {
            ++figures.unfinished;
        }
        if (!job.start) continue;
        ++figures.started;
        figures.mean_wait += *job.start - job.ready;
    }
    if (!completions.empty()) {
        const auto count = static_cast<double>(completions.size());
        figures.mean_completion = figures.mean_completion / count;
        const auto place = static_cast<std::ptrdiff_t>(std::ceil(0.95 * count)) - 1;
        std::ranges::nth_element(completions, completions.begin() + place);
        figures.p95_completion = Seconds{completions[static_cast<std::size_t>(place)]};
    }
    if (figures.started > 0) figures.mean_wait = figures.mean_wait / static_cast<double>(figures.started);
    Seconds first = outcome.end;
    for (const JobResult& job : outcome.jobs) first = std::min(first, job.ready);
    figures.makespan = outcome.end - first;
    double trained = 0;
    for (const Span& span : outcome.spans) {
        trained += (span.end - span.start - span.idle).value * static_cast<double>(span.devices.size());
    }
    const double all = figures.makespan.value * static_cast<double>(outcome.options.devices);
    figures.utilisation = all > 0 ? trained / all : 0;
    return figures;
}

Timeline timeline(const std::vector<Job>& jobs, const Outcome& outcome) {
    Timeline timeline;
    timeline.title = fmt::format("{} jobs, {}, on {} devices", jobs.size(), to_string(outcome.options.policy),
                                 outcome.options.devices);
    timeline.ranks = outcome.options.devices;
    for (const Span& span : outcome.spans) {
        const Job& job = jobs[static_cast<std::size_t>(span.job)];
        const Seconds begins = span.start + span.idle;
        for (const std::int64_t device : span.devices) {
            Event event;
            event.rank = RankIndex{device};
            event.step = job.name;
            event.layer = job.model;
            event.micro_batch = static_cast<int>(span.share.batch);
            if (begins > span.start) {
                event.pass = "restart";
                event.start = span.start;
                event.end = begins;
                timeline.events.push_back(event);
            }
            event.pass = "train";
            event.start = begins;
            event.end = span.end;
            if (event.end > event.start) timeline.events.push_back(event);
        }
    }
    std::ranges::sort(timeline.events, {}, [](const Event& e) { return std::tuple{e.rank, e.start}; });
    return timeline;
}

}  // namespace rehearse::cluster
