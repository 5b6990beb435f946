// SPDX-License-Identifier: Apache-2.0
// What the autotuner has kept: how run, calibrate and bench come by it.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/report.hpp"
#include "core/schedule.hpp"
#include "kernels/tuned/store.hpp"
#if REHEARSE_HAS_BENCH
#include "bench/tune.hpp"
#endif

namespace rehearse::cli {

class CommandLine;

enum class Tune { on, off, again };

/// --tune on|off|...
void add_tune(CommandLine& app, Tune& tune, std::vector<std::pair<std::string_view, Tune>> words,
              const std::string& help);

/// --scratch-limit SIZE
void add_scratch_limit(CommandLine& app, Bytes& limit);

/// What is kept of this host, as rank 0 reads it: all ranks of an MPI job call it and follow the same. Without SQLite
/// nothing, which is said on stderr with -v.
kernels::Choices tuned_for_all(Bytes scratch_limit, const Common& common);

/// "12 of 32 layers are tuned (...)" on stderr, where any is.
void say_how_much_is_tuned(const Schedule& schedule, const kernels::Choices& tuned, Bytes scratch_limit,
                           const Common& common);

#if REHEARSE_HAS_BENCH
std::string today();  // "2026-01-31"

/// Tunes and keeps what is not kept yet (`again`: everything); all choices of this host.
kernels::Choices tune_missing(const std::vector<calibrate::Needed>& problems, bench::TuneOptions options, Tune tune,
                              const Common& common);

/// bench --tune: tunes and keeps all, and shows it. bench tuned: shows what is kept of all hosts.
int tune_and_list(const std::vector<calibrate::Needed>& problems, bench::TuneOptions options, const Common& common);
int list_tuned(const Common& common);
#endif

}  // namespace rehearse::cli
