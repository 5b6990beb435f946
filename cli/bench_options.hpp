// SPDX-License-Identifier: Apache-2.0
// Which options of `rehearse bench` say something to which of its kinds.
#pragma once

#include "cli/bench.hpp"

namespace rehearse::cli {

class CommandLine;

/// InputError that names the first option which was given and says nothing to `options.kind`, one of bench_kinds().
void check_options_of_kind(const BenchOptions& options, const CommandLine& app);

}  // namespace rehearse::cli
