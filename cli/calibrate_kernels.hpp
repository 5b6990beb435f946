// SPDX-License-Identifier: Apache-2.0
// calibrate --kernels: a machine whose prices are corrected by a few kernels that were measured on its devices.
#pragma once

#include <string>
#include <vector>

#include "cli/report.hpp"

namespace rehearse::cli {

struct KernelCalibration {
    std::vector<std::string> files;    // JSON of Google Benchmark, or CSV with the columns problem and time_us
    std::string machine, machine_out;  // names or files
};

/// Writes the machine with one factor a kind of operator and prints how far prices were from the kernels before and
/// are now. InputError with file and line, for kernels that are no problem, too few, or far from any price.
int calibrate_kernels(const KernelCalibration& asked, const Common& common);

}  // namespace rehearse::cli
