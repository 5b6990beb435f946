// SPDX-License-Identifier: Apache-2.0
// Ranks of a job that search together.
#pragma once

#include <functional>

#include "search/search.hpp"

namespace rehearse::cli {

struct RankPlace {
    bool speaks = true;  // of several ranks only rank 0 does
    search::JobRanks ranks{};
};

/// Runs `body` on each rank that mpirun has started, with a counter that they share; where it has started none, here.
/// BackendError where this build has no MPI for them.
int on_all_ranks(const std::function<int(const RankPlace&)>& body);

}  // namespace rehearse::cli
