// SPDX-License-Identifier: Apache-2.0
// What came of a cluster's jobs, as rows of a document.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cli/json.hpp"
#include "cli/report.hpp"
#include "cluster/simulate.hpp"

namespace rehearse::cli {

/// Of the document's "policies".
Table policies_table(const std::string& title);

/// Seconds that are a mean or a quantile over so many jobs; null, over none.
Json seconds_or_null(std::int64_t jobs, Seconds value);

/// Adds a row to the document's "policies", and one of each job to its "jobs".
void add_outcome(Report& report, const std::vector<cluster::Job>& jobs, const cluster::Outcome& outcome);

}  // namespace rehearse::cli
