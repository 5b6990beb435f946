// SPDX-License-Identifier: Apache-2.0
#include "predict/training.hpp"

#include <fmt/format.h>

#include "core/error.hpp"

namespace rehearse::predict {

void check(const Training& training) {
    if (training.epochs < 1) throw InputError(fmt::format("--epochs {}: at least 1", training.epochs));
    if (training.dataset && *training.dataset < 1) {
        throw InputError(fmt::format("--dataset {}: at least 1 sample", *training.dataset));
    }
    if (training.critical_batch && !(*training.critical_batch > 0 && training.dataset)) {
        throw InputError(
            fmt::format("--critical-batch {}: more than 0 samples, and with --dataset", *training.critical_batch));
    }
}

double samples(const Training& training, double batch) {
    return static_cast<double>(training.dataset.value_or(0)) * epochs_at(training, batch);
}

double epochs_at(const Training& training, double batch) {
    return training.epochs * (1 + (training.critical_batch ? batch / *training.critical_batch : 0));
}

std::optional<TrainingTime> training_time(const Training& training, const Pace& pace) {
    if (!training.dataset) return std::nullopt;
    if (pace.global_batch > *training.dataset) {
        throw InputError(
            fmt::format("--dataset {}: a step takes {} samples, and the data set has {}: a smaller --batch or "
                        "--global-batch, or fewer devices",
                        *training.dataset, pace.global_batch, *training.dataset));
    }
    TrainingTime time;
    time.epoch = Seconds{static_cast<double>(*training.dataset) / pace.samples_per_s};
    time.epochs = epochs_at(training, static_cast<double>(pace.global_batch));
    time.all = time.epochs * time.epoch / (1 - pace.checkpoint_share) + pace.staging;
    time.node_hours = time.all.value / 3600 * static_cast<double>(pace.nodes);
    return time;
}

}  // namespace rehearse::predict
