// SPDX-License-Identifier: Apache-2.0
#include "calibrate/shared_cores.hpp"

#include <algorithm>
#include <map>

namespace rehearse::calibrate {

std::vector<SharedCores> shared_cores(std::span<const std::string> core_sets, const std::string& source) {
    std::map<std::string, std::vector<std::int64_t>> ranks;
    for (std::size_t rank = 0; rank < core_sets.size(); ++rank) {
        ranks[core_sets[rank]].push_back(static_cast<std::int64_t>(rank));
    }
    std::vector<SharedCores> shared;
    for (const auto& [set, members] : ranks) {
        const std::int64_t cores = 1 + std::ranges::count(set, ',');
        if (std::ssize(members) > cores) shared.push_back({cores, members, source});
    }
    std::ranges::sort(shared, {}, &SharedCores::devices);
    return shared;
}

double share_of_core(std::span<const SharedCores> shared, std::int64_t rank) {
    for (const SharedCores& one : shared) {
        if (std::ranges::find(one.devices, rank) == one.devices.end()) continue;
        return static_cast<double>(one.cores) / static_cast<double>(one.devices.size());
    }
    return 1;
}

}  // namespace rehearse::calibrate
