// SPDX-License-Identifier: Apache-2.0
// The way back. Nothing here needs the simulator, so that a window without one reads predictions, too.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "core/error.hpp"
#include "report/prediction_json.hpp"

namespace rehearse::report {

namespace {

using Json = nlohmann::json;

double number(const Json& object, const char* key) {
    const auto found = object.find(key);
    return found != object.end() && found->is_number() ? found->get<double>() : 0;
}
std::optional<double> perhaps(const Json& object, const char* key) {
    const auto found = object.find(key);
    return found != object.end() && found->is_number() ? std::optional{found->get<double>()} : std::nullopt;
}
std::int64_t whole(const Json& object, const char* key) {
    const double value = number(object, key);
    constexpr double exact = 0x1p53;
    if (std::abs(value) > exact)
        throw InputError(fmt::format("'{}' is {:g}, which nothing has so many of", key, value));
    return static_cast<std::int64_t>(value);
}
Seconds seconds(const Json& object, const char* key) { return Seconds{number(object, key)}; }
std::string text(const Json& object, const char* key) {
    const auto found = object.find(key);
    return found != object.end() && found->is_string() ? found->get<std::string>() : "";
}

std::vector<Json> rows_of(const Json& document, const char* key) {
    const auto found = document.find(key);
    if (found == document.end() || !found->is_array()) return {};
    return {found->begin(), found->end()};
}

std::vector<std::string> sentences(const Json& document, const char* key) {
    std::vector<std::string> found;
    for (const Json& row : rows_of(document, key)) {
        if (row.is_string()) found.push_back(row.get<std::string>());
    }
    return found;
}

Basis basis_of(const std::string& word) {
    constexpr std::array all{Basis::measured_here, Basis::measured_on_class, Basis::modelled};
    const auto found = std::ranges::find_if(all, [&](Basis basis) { return to_string(basis) == word; });
    return found == all.end() ? Basis::modelled : *found;
}

}  // namespace

predict::Point point_of(const Json& row) {
    predict::Point point;
    StepFigures& figures = point.figures;
    figures.devices = whole(row, "devices");
    figures.global_batch = whole(row, "global_batch");
    figures.time = {.step = seconds(row, "step_s"),
                    .compute = seconds(row, "compute_s"),
                    .exposed_comm = seconds(row, "exposed_comm_s"),
                    .io_wait = seconds(row, "io_wait_s"),
                    .bubble = seconds(row, "bubble_s"),
                    .rest = seconds(row, "rest_s")};
    figures.counted = perhaps(row, "counted_share").value_or(1);
    figures.work = Flops{number(row, "flops_per_s") * figures.time.step.value / figures.counted};
    figures.memory = point.memory.peak = Bytes{number(row, "memory_peak_bytes")};
    point.memory.capacity = Bytes{number(row, "memory_capacity_bytes")};
    point.memory.fits = !row.contains("fits") || row["fits"] == true;
    point.guessed = number(row, "guessed_share");
    point.utilization = perhaps(row, "utilization");
    point.nodes = whole(row, "nodes");
    point.mode = text(row, "mode") == "exact" ? sim::Mode::exact : sim::Mode::folded;
    point.band = {seconds(row, "step_low_s"), seconds(row, "step_high_s")};
    if (const auto measured = perhaps(row, "measured_step_s")) point.measured = Seconds{*measured};
    if (row.contains("pilot_scale"))
        point.anchor = {.computation = number(row, "pilot_scale"), .messages = number(row, "pilot_messages")};
    if (row.contains("checkpoint_bytes"))
        point.checkpoints = {
            {Bytes{number(row, "checkpoint_bytes")}, whole(row, "checkpoint_nodes"), seconds(row, "checkpoint_s")},
            number(row, "checkpoint_share")};
    if (row.contains("noisy_step_s")) {
        point.noisy = {.sigma = number(row, "noise"),
                       .samples = static_cast<int>(whole(row, "noise_samples")),
                       .mean = seconds(row, "noisy_step_s"),
                       .p05 = seconds(row, "noisy_p05_s"),
                       .p95 = seconds(row, "noisy_p95_s"),
                       .samples_per_s = number(row, "noisy_samples_per_s")};
    }
    point.speedup = perhaps(row, "speedup");
    point.efficiency = perhaps(row, "efficiency");
    point.wall = seconds(row, "simulation_wall_s");
    if (row.contains("training_s")) {
        point.training = {.epoch = seconds(row, "epoch_s"),
                          .epochs = number(row, "epochs"),
                          .all = seconds(row, "training_s"),
                          .node_hours = number(row, "node_hours")};
    }
    return point;
}

PredictionFile prediction_of(const Json& document, const std::string& origin) {
    const std::string schema = document.is_object() ? text(document, "schema") : "";
    if (!schema.starts_with("rehearse.prediction/")) {
        throw InputError(
            fmt::format("{}: not a prediction (schema '{}'): right would be the output of rehearse predict "
                        "--format json",
                        origin, schema));
    }
    PredictionFile prediction{text(document, "model"),     text(document, "machine"),      text(document, "plan"),
                              text(document, "precision"), text(document, "machine_file"), {}};
    std::vector<Json> rows = rows_of(document, "points");
    std::ranges::stable_sort(rows, {}, [](const Json& row) { return whole(row, "devices"); });
    for (const Json& row : rows) prediction.points.push_back(point_of(row));
    if (prediction.points.empty()) throw InputError(origin + ": a prediction without points");
    for (const Json& row : rows_of(document, "explanation")) {
        prediction.explanation.push_back({text(row, "what"), static_cast<int>(whole(row, "steps")),
                                          seconds(row, "total_s"), number(row, "share"), number(row, "error"),
                                          basis_of(text(row, "basis")), text(row, "source")});
    }
    for (const Json& row : rows_of(document, "memory")) {
        prediction.memory.push_back({text(row, "class"), text(row, "kind"), Bytes{number(row, "bytes")}});
    }
    if (const auto options = document.find("configuration"); options != document.end() && options->is_object()) {
        for (const auto& [key, value] : options->items()) {
            if (value.is_primitive())
                prediction.configuration.emplace_back(key, value.is_string() ? value.get<std::string>() : value.dump());
        }
    }
    prediction.notes = sentences(document, "notes");
    prediction.warnings = sentences(document, "warnings");
    return prediction;
}

}  // namespace rehearse::report
