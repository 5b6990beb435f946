// SPDX-License-Identifier: Apache-2.0
#include "cli/training.hpp"

#include "cli/command_line.hpp"

namespace rehearse::cli {

void add_training(CommandLine& app, predict::Training& training) {
    app.add_option("--dataset", training.dataset, "samples of an epoch: adds training time and node-hours")
        ->option_text("N");
    app.add_option("--epochs", training.epochs, "epochs of the training")
        ->capture_default_str()
        ->option_text("E")
        ->needs("--dataset");
    app.add_option("--critical-batch", training.critical_batch,
                   "batch with which twice as many epochs are needed: --epochs are those of small batches")
        ->option_text("N");
}

void add_columns(std::vector<Column>& columns, const predict::Training& training) {
    if (!training.dataset) return;
    if (training.critical_batch) columns.push_back({"epochs", "epochs", Show::number});
    columns.push_back({"training_s", "training", Show::seconds});
    columns.push_back({"node_hours", "node-hours", Show::number});
}

}  // namespace rehearse::cli
