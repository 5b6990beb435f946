// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cli/calibrate_options.hpp"

namespace rehearse::cli {

/// Measures kernels, messages and training steps on the ranks that run this, one or several hosts,
/// and keeps the machine that they fit. Returns the exit code.
int calibrate_host(const CalibrateOptions& options);

}  // namespace rehearse::cli
