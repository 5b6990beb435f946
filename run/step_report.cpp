// SPDX-License-Identifier: Apache-2.0
#include "run/step_report.hpp"

#include <algorithm>

#include "run/record.hpp"

namespace rehearse::run {

std::vector<double> figures_of(const Schedule& schedule, RankIndex rank, Program& program, Executor& executor,
                               Seconds waited) {
    Recording last{executor.bytes_sent(), 1};
    last.add(executor.times());
    Timeline timeline;
    timeline.events = events_of(schedule, rank, last.bytes_sent(), last.times(), last.times().front());
    const Summary summary = summarize(timeline);
    const double samples = program.losses().has_loss() ? static_cast<double>(program.samples()) : 0;
    std::vector<double> own{program.losses().sum(), summary.step.value, summary.exposed_comm.value, samples,
                            waited.value};
    own.insert(own.end(), program.losses().confusion().begin(), program.losses().confusion().end());
    return own;
}

StepReport reported(const kernels::Communicator& world, const Schedule& schedule, Program& program,
                    const std::vector<double>& own) {
    const std::int64_t classes = program.losses().pixel_classes();
    const std::vector<double> all = world.all_gather(own);
    StepReport report;
    double counted = 0;  // the ranks along the tensor axis have the same samples
    std::vector<double> confusion(program.losses().confusion().size());
    for (std::size_t i = 0; i < all.size(); i += own.size()) counted += all[i + 3];
    for (std::size_t i = 0; i < all.size(); i += own.size()) {
        for (std::size_t c = 0; c < confusion.size(); ++c) confusion[c] += all[i + 5 + c];
        report.input_wait = std::max(report.input_wait, Seconds{all[i + 4]});
        report.loss += all[i] / counted;
        if (all[i + 1] < report.seconds.value) continue;
        report.seconds = Seconds{all[i + 1]};
        report.exposed_comm = Seconds{all[i + 2]};
    }
    if (classes > 0) report.mean_iou = mean_iou(confusion, classes);
    // Who was lost has no samples in it.
    const double samples = std::min(static_cast<double>(global_batch(schedule)), counted);
    report.samples_per_s = samples / report.seconds.value;
    return report;
}

}  // namespace rehearse::run
