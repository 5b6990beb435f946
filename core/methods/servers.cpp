// SPDX-License-Identifier: Apache-2.0
#include "core/methods/servers.hpp"

namespace rehearse {

std::int64_t all_ranks(const Schedule& schedule) {
    return ranks(schedule.mesh) + schedule.methods.get<Servers>().count;
}

std::int64_t all_devices(const Schedule& schedule) {
    const auto& servers = schedule.methods.get<Servers>();
    return ranks(schedule.mesh) + (servers.shared ? 0 : servers.count);
}

std::int64_t device_of_server(const Schedule& schedule, std::int64_t server) {
    const auto& servers = schedule.methods.get<Servers>();
    const std::int64_t others = ranks(schedule.mesh);
    return servers.shared ? server * others / servers.count : others + server;
}

}  // namespace rehearse
