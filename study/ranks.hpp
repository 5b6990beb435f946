// SPDX-License-Identifier: Apache-2.0
// Which rank trains which of a round's trials.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace rehearse::study {

struct Division {
    std::vector<std::int64_t> ranks;  // of each turn
    double longest = 0;               // sum of a rank's costs: how long the round takes
};

/// The longest first, each to the rank that has least so far (Graham 1969); the same wherever it is asked.
Division divided(std::span<const double> costs, std::int64_t ranks);

}  // namespace rehearse::study
