// SPDX-License-Identifier: Apache-2.0
// `predict --schedule`: what Chakra's execution traces say that ranks do, on a machine.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "cli/report.hpp"
#include "core/schedule.hpp"

namespace rehearse::cli {

class CommandLine;

struct ProgramsAsked {
    std::vector<std::string> files;  // PREFIX.RANK.et, in any order; empty: a network is predicted
    std::string groups;              // the file that says who is in which group; empty: the traces say it
    std::string all_reduce;          // empty: as plans choose it
    std::function<void()> check;     // InputError for options that do not go together
};
/// --schedule, --groups and --all-reduce; with --schedule no option is taken but these and those of `beside`.
void add_programs(CommandLine& app, ProgramsAsked& asked, const std::vector<std::string>& beside);

/// Prints the document and writes the timeline where `trace` is not empty. InputError for files that are no such
/// traces, of which a rank is missing, or whose ranks do not fit together or on the machine.
int predict_programs(const ProgramsAsked& asked, const std::string& machine, Precision precision,
                     const std::string& trace, const Common& common);

}  // namespace rehearse::cli
