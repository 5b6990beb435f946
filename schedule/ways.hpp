// SPDX-License-Identifier: Apache-2.0
// What it takes to hand something from one stage of a pipeline to the next, as closely as a cut needs it: by the links
// inside nodes, by the network cards, and by how many ranks use them at once. Switches between nodes are left out.
#pragma once

#include <cstdint>
#include <vector>

#include "core/machine.hpp"
#include "core/mesh.hpp"

namespace rehearse::schedule {

/// From a rank of one stage to its neighbour in the next.
struct Way {
    double start_s = 0, s_per_byte = 0;
    const Messaging* messaging = nullptr;  // of the machine; null: nothing is known, and messages take no time
    bool operator==(const Way&) const = default;
};

/// Behind each stage, with `around` behind the last one to the first, too: that of its slowest rank, while all stages
/// send. `copies`: Schedule::stage_copies, of which the first ones stand for all. `machine` outlives what is returned.
std::vector<Way> ways_of(const Mesh& mesh, const std::vector<int>& copies, bool around, const Machine& machine);

/// Of so many messages, all bytes together.
double seconds(const Way& way, std::int64_t messages, Bytes bytes);

}  // namespace rehearse::schedule
