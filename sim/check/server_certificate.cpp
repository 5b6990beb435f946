// SPDX-License-Identifier: Apache-2.0
#include "sim/check/server_certificate.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "core/methods/servers.hpp"
#include "sim/check/bounds.hpp"
#include "sim/check/refuse.hpp"

namespace rehearse::sim {

namespace {

/// Returns the least that serving it can take. Each stage of a pipeline has a bucket of that number.
Seconds least_of(const Event& event, const Steps& steps, const Wiring& wiring) {
    const std::int64_t server = event.rank - steps.ranks();
    const DeviceClass& device = wiring.device_class(device_of_server(steps.schedule(), server));
    std::optional<Seconds> least;
    for (const RankClass& rank_class : steps.schedule().classes) {
        for (const Step& step : rank_class.steps) {
            const auto* push_pull = std::get_if<PushPull>(&step.action);
            if (push_pull == nullptr || push_pull->bucket != event.bucket || push_pull->server != server) continue;
            Seconds all;
            for (const Problem& problem : push_pull->work) all += least_time(problem, device);
            least = std::min(least.value_or(all), all);
        }
    }
    if (least) return *least;
    refuse(fmt::format("{} is no trade of the schedule", name(event)));
}

}  // namespace

void certify_servers(std::span<const Event> events, const Steps& steps, const Wiring& wiring, const Trades& trades,
                     Seconds slack) {
    std::map<std::pair<int, int>, std::int64_t> served;  // by iteration and bucket
    std::map<std::int64_t, std::vector<const Event*>> by_server;
    for (const Event& event : events) {
        if (event.rank < steps.ranks()) continue;
        at_least(event, least_of(event, steps, wiring), "peak rate or memory of its server allow", slack);
        ++served[{event.iteration, event.bucket}];
        by_server[event.rank].push_back(&event);
    }
    for (const auto& [key, count] : trades) {
        const auto found = served.find(key);
        if (found != served.end() && found->second % count == 0) continue;  // several where ranks have pieces
        refuse(fmt::format("{} trades of bucket{} in step {}, {} served", count, key.second, key.first,
                           found == served.end() ? 0 : found->second));
    }
    for (auto& [server, work] : by_server) {
        std::ranges::stable_sort(work, {}, &Event::start);
        for (std::size_t i = 1; i < work.size(); ++i) follows(*work[i], *work[i - 1], slack);
    }
}

}  // namespace rehearse::sim
