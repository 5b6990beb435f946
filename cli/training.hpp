// SPDX-License-Identifier: Apache-2.0
// --dataset and --epochs: what a whole training takes, from a step.
#pragma once

#include <nlohmann/json.hpp>

#include <cstdint>
#include <optional>
#include <vector>

#include "cli/report.hpp"

namespace CLI {
class App;
}  // namespace CLI

namespace rehearse::cli {

struct TrainingOptions {
    std::optional<std::int64_t> dataset;  // samples of an epoch
    int epochs = 1;
    std::optional<double> critical_batch;  // samples
};
void add_training(CLI::App& app, TrainingOptions& training);
/// InputError unless both are at least 1.
void check(const TrainingOptions& training);

/// Samples of the whole training; 0 where it is not known.
double samples(const TrainingOptions& training);

/// What `epochs` of small batches become at a step's batch: (1 + batch / critical batch) times as many (McCandlish et
/// al. 2018, equation 2.11).
double epochs_at(const TrainingOptions& training, double batch);

/// Where it is known: epoch_s, training_s (staging and checkpoints, if the row has them, and all epochs) and
/// node_hours, from the row's samples_per_s and nodes; and their columns.
void add_training_time(nlohmann::ordered_json& row, const TrainingOptions& training);
void add_columns(std::vector<Column>& columns, const TrainingOptions& training);

}  // namespace rehearse::cli
