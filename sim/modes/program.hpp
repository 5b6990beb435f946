// SPDX-License-Identifier: Apache-2.0
// A rank class's steps as actors work through them: which wait for which on another stream.
#pragma once

#include <vector>

#include "core/schedule.hpp"

namespace rehearse::sim {

struct Program {
    std::vector<std::vector<int>> waits;  // by step: steps of other streams; one's own stream is in order anyway
    std::vector<int> waiters;             // by step: how many steps of other streams wait for it
    std::vector<Stream> streams_used;
};
Program program_of(const RankClass& rank_class);

}  // namespace rehearse::sim
