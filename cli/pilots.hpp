// SPDX-License-Identifier: Apache-2.0
// predict --pilot: steps that were measured, as words and files, and what is said of them.
#pragma once

#include <string>
#include <vector>

#include "cli/report.hpp"
#include "predict/job.hpp"
#include "predict/prediction.hpp"

namespace rehearse::cli {

class CommandLine;

void add_pilots(CommandLine& app, std::vector<std::string>& pilots);

/// "4=1320/s", "4=97ms", or the points of a file that run or predict wrote. InputError for a file of another network
/// or precision than the job's.
std::vector<predict::Pilot> pilots_of(const std::vector<std::string>& texts, const predict::Job& job);

/// "pilots", and in "warnings" and on stderr those that contradict the machine's prices, with what would explain them.
void add_pilots(Report& report, const predict::Prediction& prediction, const Common& common);

}  // namespace rehearse::cli
