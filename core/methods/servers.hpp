// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "core/schedule.hpp"

namespace rehearse {

/// Ranks that keep the weights and update them, beside those of the mesh: server s is rank ranks(mesh) + s.
struct Servers {
    std::int64_t count = 0;
    bool shared = false;   // their devices are those of ranks of the mesh, evenly spread; else devices behind them
    int copies = 1;        // of each bucket's weights: others than the first follow it in the background
    double quorum = 1;     // share of the groups that have to be through for the rest not to be waited for
    bool factors = false;  // workers send the sufficient factors of dense layers' gradients where these are fewer
    bool operator==(const Servers&) const = default;
};

/// Ranks of the mesh and servers.
std::int64_t all_ranks(const Schedule& schedule);
/// Devices of both: none more where servers share those of ranks.
std::int64_t all_devices(const Schedule& schedule);
/// On which a server is.
std::int64_t device_of_server(const Schedule& schedule, std::int64_t server);

}  // namespace rehearse
