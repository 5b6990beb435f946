// SPDX-License-Identifier: Apache-2.0
// validate --set nccl.
#pragma once

#include <string>

#include "cli/report.hpp"

namespace rehearse::cli {

struct LibraryTableOptions {
    std::string samples, filter;  // a file with the columns of calibrate/nccl/measured.csv; empty: what is shipped
    bool rows = false;
};
/// Errors by table; `median` gets that of all rows. InputError where no row matches.
Report validate_nccl(const LibraryTableOptions& options, double& median);

}  // namespace rehearse::cli
