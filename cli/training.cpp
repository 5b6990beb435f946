// SPDX-License-Identifier: Apache-2.0
#include "cli/training.hpp"

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "core/error.hpp"

namespace rehearse::cli {

void add_training(CLI::App& app, TrainingOptions& training) {
    app.add_option("--dataset", training.dataset, "samples of an epoch: adds training time and node-hours")
        ->option_text("N");
    app.add_option("--epochs", training.epochs, "epochs of the training")->capture_default_str()->option_text("E");
    app.add_option("--critical-batch", training.critical_batch,
                   "batch with which twice as many epochs are needed: --epochs are those of small batches")
        ->option_text("N");
}

void check(const TrainingOptions& training) {
    if (training.epochs < 1) throw InputError(fmt::format("--epochs {}: at least 1", training.epochs));
    if (training.dataset && *training.dataset < 1) {
        throw InputError(fmt::format("--dataset {}: at least 1 sample", *training.dataset));
    }
    if (training.critical_batch && !(*training.critical_batch > 0 && training.dataset)) {
        throw InputError(
            fmt::format("--critical-batch {}: more than 0 samples, and with --dataset", *training.critical_batch));
    }
}

double samples(const TrainingOptions& training) {
    return static_cast<double>(training.dataset.value_or(0)) * training.epochs;
}

double epochs_at(const TrainingOptions& training, double batch) {
    return training.epochs * (1 + (training.critical_batch ? batch / *training.critical_batch : 0));
}

void add_training_time(nlohmann::ordered_json& row, const TrainingOptions& training) {
    if (!training.dataset) return;
    const double samples_per_s = row["samples_per_s"].get<double>();
    row["epoch_s"] = static_cast<double>(*training.dataset) / samples_per_s;
    row["epochs"] = epochs_at(training, row["global_batch"].get<double>());
    const double all_epochs = row["epochs"].get<double>() * row["epoch_s"].get<double>();
    row["training_s"] = all_epochs / (1 - row.value("checkpoint_share", 0.0)) + row.value("staging_s", 0.0);
    row["node_hours"] = row["training_s"].get<double>() / 3600 * row["nodes"].get<double>();
}

void add_columns(std::vector<Column>& columns, const TrainingOptions& training) {
    if (!training.dataset) return;
    if (training.critical_batch) columns.push_back({"epochs", "epochs", Show::number});
    columns.push_back({"training_s", "training", Show::seconds});
    columns.push_back({"node_hours", "node-hours", Show::number});
}

}  // namespace rehearse::cli
