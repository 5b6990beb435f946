// SPDX-License-Identifier: Apache-2.0
// Which ranks share cores.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/machine.hpp"

namespace rehearse::calibrate {

/// `core_sets`: by rank, on which host and which of its cores it may run (models::core_set). Ranks of one set that has
/// fewer cores than ranks share them.
std::vector<SharedCores> shared_cores(std::span<const std::string> core_sets, const std::string& source);

/// What part of a core a rank has while all compute.
double share_of_core(std::span<const SharedCores> shared, std::int64_t rank);

}  // namespace rehearse::calibrate
