// SPDX-License-Identifier: Apache-2.0
// A prediction as JSON: the only file that gives its figures their keys.
#pragma once

#include <nlohmann/json.hpp>

#include "predict/prediction.hpp"

namespace rehearse::cli {

nlohmann::ordered_json json_of(const predict::Point& point);
/// epoch_s, epochs, training_s, node_hours; nothing where they are not known.
void add_training_time(nlohmann::ordered_json& row, const std::optional<predict::TrainingTime>& training);

}  // namespace rehearse::cli
