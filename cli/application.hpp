// SPDX-License-Identifier: Apache-2.0
// `rehearse report`: how far predictions of published runs were off on machines of a class.
#pragma once

#include <optional>

#include "cli/command.hpp"
#include "core/machine.hpp"
#include "core/progress.hpp"
#include "report/document/application.hpp"

namespace rehearse::cli {

class CommandLine;

Run add_report(CommandLine& app);

/// Of published rows on machines with the same device, those that can be replayed: anchored on a measured run or cold.
/// Rows from memory are left out. Nothing where there are none.
std::optional<report::TrackRecord> track_record(const Machine& machine, bool anchored, const Progress& progress);

}  // namespace rehearse::cli
