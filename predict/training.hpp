// SPDX-License-Identifier: Apache-2.0
// A whole training, from one of its steps.
#pragma once

#include <cstdint>
#include <optional>

#include "core/units.hpp"

namespace rehearse::predict {

struct Training {
    std::optional<std::int64_t> dataset{};   // samples of an epoch
    int epochs = 1;                          // ... of small batches
    std::optional<double> critical_batch{};  // with which twice as many epochs are needed, in samples
};
/// InputError unless each is at least 1 and a critical batch comes with a data set.
void check(const Training& training);

/// What `epochs` of small batches become at a step's batch: (1 + batch / critical batch) times as many (McCandlish et
/// al. 2018, equation 2.11).
double epochs_at(const Training& training, double batch);

/// Returns the samples of the whole training with steps of `batch` samples; 0 where the data set is not known.
double samples(const Training& training, double batch);

struct TrainingTime {
    Seconds epoch;
    double epochs = 1;
    Seconds all;  // staging, and all epochs with their checkpoints
    double node_hours = 0;
};

/// What the time of a training depends on beside its data set.
struct Pace {
    double samples_per_s = 0;
    std::int64_t global_batch = 0;
    std::int64_t nodes = 1;       // that are paid for: with those of data servers
    double checkpoint_share = 0;  // of the time after staging
    Seconds staging{};            // before the first step
};
/// Returns the time of a whole training; nothing where the data set is not known. InputError for a step that takes more
/// samples than there are.
std::optional<TrainingTime> training_time(const Training& training, const Pace& pace);

}  // namespace rehearse::predict
