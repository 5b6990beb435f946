// SPDX-License-Identifier: Apache-2.0
// What ranks do, to and from files of other simulators. docs/traces.md says what of it each format holds.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/rank_program.hpp"

namespace rehearse::trace {

enum class ProgramFormat { chakra, goal, smpi };

/// Files that write_programs makes under such a prefix, in order.
std::vector<std::string> program_files(const RankPrograms& programs, const std::string& prefix, ProgramFormat format);
/// Chakra execution traces: PREFIX.RANK.et a rank and PREFIX.groups.json, the groups of ranks by the numbers that
/// pg_name has. GOAL: PREFIX.goal. SMPI's time-independent traces: PREFIX.RANK.ti a rank and PREFIX.ti, their names;
/// one unit of `compute` is a nanosecond. GOAL and SMPI take programs without collectives (bug check).
void write_programs(const RankPrograms& programs, const std::string& prefix, ProgramFormat format);

/// One Chakra file a rank, in the order of ranks, and what the groups are (the text of PREFIX.groups.json; empty: all
/// collectives are of all ranks). InputError with file and byte for what is cut off, broken or of an unknown schema.
RankPrograms read_chakra(const std::vector<std::string>& files, std::string_view groups_json);

}  // namespace rehearse::trace
