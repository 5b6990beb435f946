// SPDX-License-Identifier: Apache-2.0
#include "cli/predicted_job.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "models/frameworks.hpp"

namespace rehearse::cli {

namespace {

// Of the configuration that a prediction was asked with.
std::string configured(const nlohmann::json& document, const char* key, std::string_view otherwise) {
    const auto configuration = document.find("configuration");
    if (configuration == document.end() || !configuration->is_object()) return std::string{otherwise};
    const auto found = configuration->find(key);
    return found != configuration->end() && found->is_string() ? found->get<std::string>() : std::string{otherwise};
}

// The machine as the user named it: one of his own is a file, and only that file knows it.
std::string machine_of(const report::PredictionFile& file, const nlohmann::json& document) {
    if (!file.machine_file.empty()) return file.machine_file;
    const std::string asked = configured(document, "machine", file.machine);
    return asked.ends_with(".toml") ? asked : file.machine;
}

struct JobWord {
    const char* word;
    std::string PredictedJob::*value;
};
constexpr std::array job_words{
    JobWord{"model", &PredictedJob::model},         JobWord{"machine", &PredictedJob::machine},
    JobWord{"plan", &PredictedJob::plan},           JobWord{"precision", &PredictedJob::precision},
    JobWord{"optimizer", &PredictedJob::optimizer}, JobWord{"framework", &PredictedJob::framework}};

}  // namespace

PredictedJob predicted_job(const report::PredictionFile& file, const nlohmann::json& document) {
    return {file.model,
            machine_of(file, document),
            file.plan,
            file.precision,
            configured(document, "optimizer", "sgd"),
            configured(document, "framework", models::default_framework)};
}

void check_same(const PredictedJob& job, const PredictedJob& before, const std::string& path) {
    for (const JobWord& each : job_words) {
        if (job.*each.value == before.*each.value) continue;
        throw InputError(fmt::format("{}: its {} is '{}', that of the prediction before '{}': a report is of one job",
                                     path, each.word, job.*each.value, before.*each.value));
    }
}

report::ScalingStudy study_of(const report::PredictionFile& file, const std::string& path) {
    for (const predict::Point& point : file.points) {
        if (point.figures.devices < 1)
            throw InputError(fmt::format("{}: a point on {} devices: at least 1", path, point.figures.devices));
    }
    const auto a_device = [](const predict::Point& point) {
        return static_cast<double>(point.figures.global_batch) / static_cast<double>(point.figures.devices);
    };
    const bool strong =
        file.points.size() > 1 && file.points.front().figures.global_batch == file.points.back().figures.global_batch;
    const auto batch =
        strong ? file.points.front().figures.global_batch : static_cast<std::int64_t>(a_device(file.points.front()));
    return {strong, std::max<std::int64_t>(batch, 1), file.points};
}

}  // namespace rehearse::cli
