// SPDX-License-Identifier: Apache-2.0
// When each box begins: a simulation without messages, in ticks.
#pragma once

#include <vector>

#include "schedule/boxes.hpp"

namespace rehearse::schedule {

/// Instead of a box's index, where a step is of another stream.
inline constexpr int no_box = -1;

/// A class's boxes, and which one each step is in, or `no_box`.
struct Boxed {
    std::vector<ComputeBox> boxes;
    std::vector<int> box_of;
};

/// Fills in where each box starts, from its length and what its steps wait for.
void place(const Schedule& schedule, std::vector<Boxed>& classes);

}  // namespace rehearse::schedule
