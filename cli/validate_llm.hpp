// SPDX-License-Identifier: Apache-2.0
// validate --set llm.
#pragma once

#include <string>

#include "cli/report.hpp"

namespace rehearse::cli {

struct LanguageTableOptions {
    std::string samples, filter;  // a file with the columns of calibrate/llm/results.csv; empty: what is shipped
    bool rows = false;
};
/// Errors of time and memory by source and machine, and how well plans are ranked; `median` gets that of the time with
/// a pilot, or cold where no row has one. InputError where no row matches.
Report validate_llm(const LanguageTableOptions& options, double& median);

}  // namespace rehearse::cli
