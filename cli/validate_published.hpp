// SPDX-License-Identifier: Apache-2.0
// validate --set published and --set FILE.csv.
#pragma once

#include <string>

#include "cli/json.hpp"
#include "cli/report.hpp"
#include "core/progress.hpp"
#include "validate/row_errors.hpp"

namespace rehearse::cli {

struct PublishedOptions {
    std::string file;  // empty: what is shipped
    std::string filter, rules;
    std::string plot;   // empty, or a folder for charts
    bool rows = false;  // a table of every row, before that of groups
    int pilots = 1;     // 2: what a second pilot gains, too
};

/// rows, mean_error, median_error, p90_error, in_band, and the median band_width where there are bands.
Json json_of(const validate::ErrorSummary& summary);

/// Every row with its predictions; `median` gets the median error, of anchored rows where there are any, else of all.
Report validate_published(const PublishedOptions& options, const Progress& progress, double& median);

}  // namespace rehearse::cli
