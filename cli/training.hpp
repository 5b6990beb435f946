// SPDX-License-Identifier: Apache-2.0
// The words for what a whole training takes, from a step: --dataset, --epochs, --critical-batch.
#pragma once

#include <vector>

#include "cli/report.hpp"
#include "predict/training.hpp"

namespace rehearse::cli {

class CommandLine;

void add_training(CommandLine& app, predict::Training& training);
/// Columns of the times that add_training_time() gives a row (report/prediction_json.hpp).
void add_columns(std::vector<Column>& columns, const predict::Training& training);

}  // namespace rehearse::cli
