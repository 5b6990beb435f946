// SPDX-License-Identifier: Apache-2.0
// What the steps of a schedule wait for, beside the times of a timeline: which of them could have been later.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/schedule.hpp"

namespace rehearse {

/// Of ranks that run one program. Steps that wait for one of another stream, or that one waits for; on its own stream
/// each waits for the one before it, and an iteration for all of the one before it.
struct Dependencies {
    struct Step {
        std::string step;  // Event::step; the n-th of a stream's events of this name and micro-batch, of an iteration
        Stream stream = Stream::compute;
        int micro_batch = 0;
        std::vector<int> after;  // indices of earlier ones
        bool operator==(const Step&) const = default;
    };
    std::vector<RankIndex> ranks;  // that have events
    std::vector<Step> steps;       // in the program's order
    bool operator==(const Dependencies&) const = default;
};

/// Of the classes of these ranks.
std::vector<Dependencies> dependencies_of(const Schedule& schedule, std::span<const RankIndex> ranks);

}  // namespace rehearse
