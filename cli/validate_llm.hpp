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
/// Errors of time and memory by source and machine, how well plans are ranked and how much of them lies in bands told
/// by other machines; `middle` gets the median error of the time with a pilot, or cold where no row has one. InputError
/// where no row matches.
Report validate_llm(const LanguageTableOptions& options, double& middle);

}  // namespace rehearse::cli
