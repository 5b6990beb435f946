// SPDX-License-Identifier: Apache-2.0
// Which devices of a cluster are free.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "core/error.hpp"

namespace rehearse::cluster {

class Devices {
public:
    explicit Devices(std::int64_t count) : free_(static_cast<std::size_t>(count), true) {}

    std::int64_t free() const { return std::ranges::count(free_, true); }

    /// Makes `held` (ascending) `count` devices: gives back its last ones, or takes the first free ones.
    void resize(std::vector<std::int64_t>& held, std::int64_t count) {
        while (static_cast<std::int64_t>(held.size()) > count) {
            free_[static_cast<std::size_t>(held.back())] = true;
            held.pop_back();
        }
        for (std::size_t d = 0; static_cast<std::int64_t>(held.size()) < count; ++d) {
            require(d < free_.size(), "as many free devices as are given");
            if (!free_[d]) continue;
            free_[d] = false;
            held.push_back(static_cast<std::int64_t>(d));
        }
        std::ranges::sort(held);
    }

private:
    std::vector<bool> free_;
};

}  // namespace rehearse::cluster
