// SPDX-License-Identifier: Apache-2.0
// validate --set nccl.
#pragma once

#include <string>

#include "cli/report.hpp"
#include "core/progress.hpp"

namespace rehearse::cli {

struct LibraryTableOptions {
    std::string samples, filter;  // a file with the columns of calibrate/nccl/measured.csv; empty: what is shipped
    bool rows = false;
};
/// Errors by table; `median` gets that of all rows. `progress` is told of the machines that are left out in turn; ended
/// early, there are errors of fewer. InputError where no row matches.
Report validate_nccl(const LibraryTableOptions& options, const Progress& progress, double& median);

}  // namespace rehearse::cli
