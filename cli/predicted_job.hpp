// SPDX-License-Identifier: Apache-2.0
// What a document of `rehearse predict` was asked, for a report that is made of some of them.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "report/document/application.hpp"
#include "report/prediction_json.hpp"

namespace rehearse::cli {

/// What a prediction was asked with and a report says once, of all of them. `machine` is a name, or the file that alone
/// knows it.
struct PredictedJob {
    std::string model, machine, plan, precision, optimizer, framework;
};

PredictedJob predicted_job(const report::PredictionFile& file, const nlohmann::json& document);

/// Throws InputError "path: ..." where two predictions are of different jobs.
void check_same(const PredictedJob& job, const PredictedJob& before, const std::string& path);

/// Its points: weak scaling where each device has as many samples on all sizes. InputError "path: ..." where a point is
/// on no device.
report::ScalingStudy study_of(const report::PredictionFile& file, const std::string& path);

}  // namespace rehearse::cli
