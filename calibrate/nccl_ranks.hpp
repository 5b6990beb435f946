// SPDX-License-Identifier: Apache-2.0
// What nccl-tests says of its ranks. For read_nccl_tests.cpp alone.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace rehearse::calibrate {

/// A line "# Rank  5 Group  1 Pid 1005 on nid00001 device 1": empty words where the version does not print them.
struct RankLine {
    std::string group, host;
};

/// The ranks of one communicator and on how many hosts they are; 0 hosts where no line tells.
struct Communicator {
    std::int64_t ranks = 0, hosts = 0;
};

/// Reads such a line, cut into words.
RankLine rank_line(const std::vector<std::string_view>& words);

/// Returns the communicators that the test may have run in, the likeliest first: where NCCL_TESTS_SPLIT made groups of
/// the ranks, all of one size, that of a group; then that of all ranks. Without lines: `otherwise` ranks.
std::vector<Communicator> communicators(const std::vector<RankLine>& lines, std::int64_t otherwise);

}  // namespace rehearse::calibrate
