// SPDX-License-Identifier: Apache-2.0
// `rehearse validate --set neusight`: prices of kernels on boards, convolutions beside the algorithms that ran.
#pragma once

#include <string>

#include "cli/progress.hpp"
#include "cli/report.hpp"

namespace rehearse::cli {

struct NeuSightOptions {
    std::string samples, filter;  // a table in the form of calibrate/neusight/convolutions.csv; a regular expression
    std::string leave = "shape";  // shape, family (sides of images), device
};

/// Groups by board, kind, sizes and by what the price knew. `median` becomes that of the kind whose shipped prices are
/// furthest off.
Report validate_neusight(const NeuSightOptions& options, const Progress& progress, double& median);

/// Learns the covariances of boards anew and writes lengths.csv.
void learn_neusight(const std::string& path);

}  // namespace rehearse::cli
