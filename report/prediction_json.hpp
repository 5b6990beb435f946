// SPDX-License-Identifier: Apache-2.0
// A prediction as JSON, there and back: the only files that give its figures their keys.
#pragma once

#include <nlohmann/json.hpp>

#include <string>
#include <utility>
#include <vector>

#include "core/figures.hpp"
#include "predict/explain.hpp"
#include "predict/prediction.hpp"

namespace rehearse::report {

nlohmann::ordered_json json_of(const StepFigures& figures);
nlohmann::ordered_json json_of(const predict::Point& point);
/// staleness, mean_staleness, most_staleness.
void add_staleness(nlohmann::ordered_json& row, const Staleness& staleness);
/// epoch_s, epochs, training_s, node_hours; nothing where they are not known.
void add_training_time(nlohmann::ordered_json& row, const std::optional<predict::TrainingTime>& training);
nlohmann::ordered_json json_of(const predict::Explained& part);

/// "measured", "anchored on 4 devices", "cold".
std::string basis_of(const predict::Point& point);

struct MemoryPart {
    std::string rank_class, kind;
    Bytes bytes;
};

/// What `rehearse predict --format json` prints, as far as anybody reads it again. Figures that a file does not have
/// are 0 or absent.
struct PredictionFile {
    std::string model, machine, plan, precision;
    std::string machine_file{};                     // where the machine is not built in
    std::vector<predict::Point> points;             // by devices
    std::vector<predict::Explained> explanation{};  // of the largest point
    std::vector<MemoryPart> memory{};               // of the same
    std::vector<std::string> notes{}, warnings{};   // what is to be known beside the figures
    /// Its command line's options as words: {"batch", "32"}, {"framework", "rehearse"}, ...
    std::vector<std::pair<std::string, std::string>> configuration{};
};
/// A point of a prediction, or of a measured run, which has fewer figures.
predict::Point point_of(const nlohmann::json& row);
/// InputError with `origin` when it is no prediction or has no points. Prices of unknown basis are called modelled.
PredictionFile prediction_of(const nlohmann::json& document, const std::string& origin);

}  // namespace rehearse::report
