// SPDX-License-Identifier: Apache-2.0
// validate --set published and --set FILE.csv.
#pragma once

#include <string>

#include "cli/report.hpp"

namespace rehearse::cli {

struct PublishedOptions {
    std::string file;  // empty: what is shipped
    std::string filter, rules;
    std::string plot;   // empty, or a folder for charts
    bool rows = false;  // a table of every row, before that of groups
};

/// Every row with its predictions; `median` gets the median error, of anchored rows where there are any, else of all.
Report validate_published(const PublishedOptions& options, double& median);

}  // namespace rehearse::cli
