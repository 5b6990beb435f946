// SPDX-License-Identifier: Apache-2.0
#include "schedule/own_library.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "core/collectives/library.hpp"

namespace rehearse::schedule {

namespace {

bool asks(const Plan& plan) { return plan.all_reduce && plan.all_reduce->name == own_library; }

// How many ranks of a group along an axis each of its nodes has: the same number on all, or a reason.
std::string unevenness(const Machine& machine, const Mesh& mesh, int axis) {
    if (is_partial(mesh, axis)) return "its ranks lie on nodes as they come";
    for (RankIndex first{0}; first < ranks(mesh); ++first) {
        if (place_on(mesh, axis, first) != 0) continue;
        std::map<std::int64_t, std::int64_t> on_node;
        for (std::int64_t member = 0; member < size_of(mesh, axis); ++member)
            ++on_node[locate(machine, first + member * stride(mesh, axis)).node];
        const auto [least, most] =
            std::ranges::minmax_element(on_node, {}, [](const auto& entry) { return entry.second; });
        if (least->second != most->second)
            return fmt::format("a node has {} of its ranks and another {}, for which {} is not modelled", most->second,
                               least->second, machine.collectives.library->name);
    }
    return "";
}

std::string unknown_device(const Machine& machine, const Mesh& mesh) {
    const CollectiveLibrary& library = *machine.collectives.library;
    std::set<const DeviceClass*> classes;
    for (RankIndex rank{0}; rank < ranks(mesh); ++rank) classes.insert(&class_of(machine, rank));
    for (const DeviceClass* each : classes) {
        if (architecture_of(library, each->like, each->name) == nullptr)
            return fmt::format("{} knows no device '{}'", library.name, each->name);
    }
    return "";
}

std::string why_not(const Machine& machine, const Mesh& mesh, int axis) {
    const CollectiveSoftware& own = machine.collectives;
    if (own.library == nullptr || own.source.empty())
        return fmt::format("machine '{}' names no library of its own ([collectives])", machine.name);
    if (own.of_another)
        return fmt::format("what machine '{}' says of {} is of its network without that transport", machine.name,
                           own.library->name);
    const std::string unknown = unknown_device(machine, mesh);
    return unknown.empty() ? unevenness(machine, mesh, axis) : unknown;
}

}  // namespace

void settle_own_library(const Plan& plan, const Machine& machine, Schedule& schedule) {
    if (!asks(plan)) return;
    std::map<int, bool> possible;  // by axis
    for (RankClass& rank_class : schedule.classes) {
        for (Step& step : rank_class.steps) {
            auto* sum = std::get_if<Communicate>(&step.action);
            if (sum == nullptr || !sum->of_bucket()) continue;
            const auto [entry, fresh] = possible.try_emplace(sum->axis);
            if (fresh) entry->second = why_not(machine, schedule.mesh, sum->axis).empty();
            if (entry->second) sum->algorithm = {.name = machine.collectives.library->name};
        }
    }
}

std::string why_rings(const Plan& plan, const Machine& machine, const Schedule& schedule) {
    if (!asks(plan)) return "";
    for (const RankClass& rank_class : schedule.classes) {
        for (const Step& step : rank_class.steps) {
            const auto* sum = std::get_if<Communicate>(&step.action);
            if (sum == nullptr || !sum->of_bucket() || of_library(sum->algorithm)) continue;
            return why_not(machine, schedule.mesh, sum->axis);
        }
    }
    return "";
}

}  // namespace rehearse::schedule
