// SPDX-License-Identifier: Apache-2.0
// What came of a cluster's jobs, as rows of a document.
#pragma once

#include <string>
#include <vector>

#include "cli/report.hpp"
#include "cluster/simulate.hpp"

namespace rehearse::cli {

/// Of the document's "policies".
Table policies_table(const std::string& title);

/// Adds a row to the document's "policies", and one of each job to its "jobs".
void add_outcome(Report& report, const std::vector<cluster::Job>& jobs, const cluster::Outcome& outcome);

}  // namespace rehearse::cli
