// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cli/calibrate_options.hpp"

namespace rehearse::cli {

/// Replaces figures of `options.machine` by the samples of the files `options.samples` and writes
/// `options.machine_out`; nothing is measured. Throws InputError where one of these is missing.
/// Returns the exit code.
int calibrate_samples(const CalibrateOptions& options);

}  // namespace rehearse::cli
