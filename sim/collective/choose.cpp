// SPDX-License-Identifier: Apache-2.0
#include "sim/collective/choose.hpp"

#include <fmt/format.h>

#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "core/error.hpp"
#include "sim/collective/in_switch.hpp"
#include "sim/collective/price.hpp"

namespace rehearse::sim {

namespace {

std::vector<std::string> candidates(CollectiveKind kind) {
    std::vector<std::string> names;
    for (const AlgorithmName& each : algorithms(kind)) {
        if (each.name.find('(') == std::string_view::npos) names.emplace_back(each.name);
    }
    if (kind != CollectiveKind::all_reduce) return names;
    for (const char* across : {"doubling", "halving", "ring", "direct"})
        names.push_back(fmt::format("hierarchical(ring,{})", across));
    return names;
}

// Nothing where the algorithm cannot serve the ranks. A message's overhead is no core's time here, so that direct's
// many messages at once would look cheaper than they are: it is for switches that sum.
std::optional<Seconds> time_of(const Call& call, const Schedule& schedule, const Machine& machine) {
    try {
        if (call.algorithm.name == "direct" || call.algorithm.across == "direct") {
            const Wiring wiring{machine};
            if (!in_switch(call, groups_along(schedule.mesh, call.axis, call.algorithm, wiring), wiring))
                return std::nullopt;
        }
        return collective_time(call, schedule.mesh, machine);
    } catch (const InputError&) {
        return std::nullopt;
    }
}

Algorithm fastest(Call call, const Schedule& schedule, const Machine& machine) {
    std::optional<std::tuple<Seconds, std::string>> best;
    for (const std::string& name : candidates(call.kind)) {
        call.algorithm = parse_algorithm(name, call.kind);
        const std::optional<Seconds> time = time_of(call, schedule, machine);
        if (time && (!best || std::tuple{*time, name} < *best)) best = {*time, name};
    }
    if (!best) return {};  // the simulation will say why
    return parse_algorithm(std::get<1>(*best), call.kind);
}

}  // namespace

void choose_algorithms(Schedule& schedule, const Machine& machine) {
    std::map<std::tuple<CollectiveKind, int, std::int64_t, DataType>, Algorithm> chosen;
    for (RankClass& rank_class : schedule.classes) {
        for (Step& step : rank_class.steps) {
            auto* sum = std::get_if<Communicate>(&step.action);
            if (sum == nullptr || !sum->of_bucket()) continue;
            const auto [entry, fresh] = chosen.try_emplace({sum->kind, sum->axis, sum->elements, sum->type});
            if (fresh) entry->second = fastest(call_of(*sum), schedule, machine);
            sum->algorithm = entry->second;
        }
    }
}

}  // namespace rehearse::sim
