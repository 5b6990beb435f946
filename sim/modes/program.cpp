// SPDX-License-Identifier: Apache-2.0
#include "sim/modes/program.hpp"

#include <algorithm>

namespace rehearse::sim {

Program program_of(const RankClass& rank_class) {
    Program program;
    const std::vector<Step>& steps = rank_class.steps;
    program.waits.resize(steps.size());
    program.waiters.resize(steps.size());
    for (std::size_t i = 0; i < steps.size(); ++i) {
        for (const int before : steps[i].after) {
            const auto b = static_cast<std::size_t>(before);
            if (steps[b].stream == steps[i].stream) continue;
            program.waits[i].push_back(before);
            ++program.waiters[b];
        }
    }
    program.streams_used = streams_of(steps);
    return program;
}

}  // namespace rehearse::sim
