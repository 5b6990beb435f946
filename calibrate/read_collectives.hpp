// SPDX-License-Identifier: Apache-2.0
// Files of collectives' times: the text of nccl-tests (and rccl-tests) and of the OSU micro-benchmarks, the JSON lines
// of NCCL Inspector.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "calibrate/read_samples.hpp"

namespace rehearse::calibrate {

/// A time of a log of nccl-tests, and the line that it stands in.
struct NcclRow {
    CollectiveRow row;
    std::string here;    // "log.txt:17"
    bool named = false;  // false: an all-gather by its rates, which all-to-alls have too
};
struct NcclLog {
    std::vector<NcclRow> rows;
    std::vector<std::string> skipped;
    bool asked_ranks = false;  // a test without the lines "# Rank ..." is in it
};
/// All tests of nccl-tests, in and out of place; several in one log, with other lines between the rows. Which one it
/// was is told by its name, or by its operation, its root and busbw / algbw (doc/PERFORMANCE.md, github
/// NVIDIA/nccl-tests), which must agree with the ranks. `ranks`: of a log without the lines "# Rank ...".
NcclLog read_nccl_log(std::string_view text, const std::string& origin, std::int64_t ranks = 0);
/// The same as messages.
FileSamples read_nccl(std::string_view text, const std::string& origin, std::int64_t ranks = 0);

/// `ranks`: of collectives, which OSU's text does not tell.
FileSamples read_osu(std::string_view text, const std::string& origin, std::int64_t ranks);

/// Whether the first line is a record of NCCL Inspector (github NVIDIA/nccl, ext-profiler/inspector).
bool is_inspector(std::string_view text);
/// Of a collective on several ranks the shortest time counts: the rank that came last waited for nobody.
FileSamples read_inspector(std::string_view text, const std::string& origin);

}  // namespace rehearse::calibrate
