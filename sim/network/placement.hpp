// SPDX-License-Identifier: Apache-2.0
// Which nodes of a machine a job gets.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "core/machine.hpp"

namespace rehearse::sim {

/// contiguous: the first nodes. random: any nodes in any order, as a machine that is never empty hands them out.
/// scattered: as far apart as they can be, at equal distances in the machine's own order.
enum class Placement { contiguous, random, scattered };
std::string_view to_string(Placement placement);

/// By node of a job on the first `devices` devices: the machine's node (Options::nodes). Empty for contiguous, and for
/// a job on all nodes that is not random.
std::vector<std::int64_t> placed_nodes(Placement placement, const Machine& machine, std::int64_t devices,
                                       std::uint64_t seed = 1);

}  // namespace rehearse::sim
