// SPDX-License-Identifier: Apache-2.0
// validate --set megatron.
#pragma once

#include <string>

#include "cli/report.hpp"
#include "core/progress.hpp"

namespace rehearse::cli {

struct MegatronOptions {
    std::string samples;  // a file with vTrain's columns; empty: what is shipped
    std::string machine;  // empty: those that the tables were measured on
    std::string filter;
};

/// Every row with its predictions; `median` gets the median error of those that nothing was fitted on.
Report validate_megatron(const MegatronOptions& options, const Progress& progress, double& median);

}  // namespace rehearse::cli
