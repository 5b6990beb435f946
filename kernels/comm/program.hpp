// SPDX-License-Identifier: Apache-2.0
// What one rank sends, receives and adds in each round of an all-reduce. Made once a (algorithm, group, elements), so
// that a training step neither searches nor allocates.
#pragma once

#include <cstdint>
#include <vector>

#include "core/collective.hpp"

namespace rehearse::kernels {

struct AllReduceProgram {
    struct Part {
        std::int64_t peer = 0;
        std::int64_t begin = 0, count = 0;  // elements of the buffer
    };
    struct Round {
        std::vector<Part> sends;
        std::vector<Part> copies;  // received in place
        std::vector<Part> sums;    // received into scratch, one after the other, then added in this order
    };

    /// Of `rank` in the collective's group. Rounds without this rank are left out.
    AllReduceProgram(const Collective& collective, std::int64_t rank);

    std::int64_t elements = 0;
    std::int64_t ranks = 1;
    std::vector<Round> rounds;
    std::int64_t scratch = 0;   // elements that the fullest round adds
    std::int64_t messages = 0;  // of the fullest round
};

}  // namespace rehearse::kernels
