// SPDX-License-Identifier: Apache-2.0
// Errors of judged kernels as tables and JSON (rehearse.validation/1).
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "calibrate/validate_kernels.hpp"
#include "cli/json.hpp"
#include "cli/report.hpp"

namespace rehearse::cli {

/// A judged kernel and where it belongs.
struct JudgedRow {
    std::string device, precision, kind, pass;
    calibrate::Judged judged;
    bool fitted = false;  // the model has seen this very problem
    std::string source;
    std::string group() const;  // "v100 f32 conv2d forward"
};

/// What a validation found.
struct Validation {
    std::vector<JudgedRow> rows;
    Json skipped = Json::array();
    std::map<std::string, int> reasons;  // of skipped rows
    std::string footer;
};

/// Those of `rows` that are `wanted`.
std::vector<calibrate::Judged> judged(const std::vector<JudgedRow>& rows,
                                      const std::function<bool(const JudgedRow&)>& wanted);

/// Groups by device, type, kind and pass; summaries of the kinds, and of rows that the model was fitted on ("anchored")
/// and was not ("cold"); every row.
Report report_of(const Validation& validation, Json configuration);

}  // namespace rehearse::cli
