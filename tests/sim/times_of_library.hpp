// SPDX-License-Identifier: Apache-2.0
// What a shipped machine's library takes, for tests.
#pragma once

#include <cstdint>
#include <numeric>
#include <string>
#include <vector>

#include "models/models.hpp"
#include "sim/collective/libraries/library_times.hpp"

namespace rehearse::sim {

inline std::vector<int> first(int count) {
    std::vector<int> devices(static_cast<std::size_t>(count));
    std::iota(devices.begin(), devices.end(), 0);
    return devices;
}

inline LibraryTimes times(const std::string& name, std::int64_t nodes, int devices) {
    const Machine machine = models::load_machine(name);
    return {machine, machine.collectives, 0, nodes, first(devices)};
}

}  // namespace rehearse::sim
