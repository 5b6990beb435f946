// SPDX-License-Identifier: Apache-2.0
// The ranks that measure at the same time: cores of one host share caches and the memory interface.
#pragma once

#include <cstdint>
#include <functional>

namespace rehearse::bench {

struct Team {
    std::int64_t rank = 0, ranks = 1;
    std::function<void()> barrier = [] {};
    std::function<double(double)> mean = [](double mine) { return mine; };  // over the ranks, the same on each
};

}  // namespace rehearse::bench
