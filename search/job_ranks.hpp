// SPDX-License-Identifier: Apache-2.0
// What the ranks of a job tell each other, as lines of text.
#pragma once

#include <utility>
#include <vector>

#include "search/search.hpp"

namespace rehearse::search {

using Exchange = std::function<std::vector<std::string>(const std::string&)>;

/// Of all ranks.
void join_candidates(std::vector<Candidate>& candidates, const Exchange& exchange);

/// By number: what was simulated.
std::vector<std::pair<std::size_t, Simulated>> join_results(const std::vector<std::pair<std::size_t, Simulated>>& own,
                                                            const Exchange& exchange);

/// Sums of what each rank counted; the least memory of all.
void join_counts(Result& result, const Exchange& exchange);

}  // namespace rehearse::search
