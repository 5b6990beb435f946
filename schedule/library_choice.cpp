// SPDX-License-Identifier: Apache-2.0
#include "schedule/library_choice.hpp"

#include <algorithm>
#include <utility>

#include "models/mpi_libraries.hpp"
#include "schedule/mesh.hpp"

namespace rehearse::schedule {

namespace {

/// Devices of a node that the ranks fill; 1 where they don't fill nodes evenly.
std::int64_t filled(const Machine& machine, std::int64_t ranks) {
    const std::int64_t each = devices_per_node(machine.nodes.front());
    const bool alike =
        std::ranges::all_of(machine.nodes, [&](const NodeKind& kind) { return devices_per_node(kind) == each; });
    if (!alike || each < 1) return 1;
    return ranks <= each ? ranks : ranks % each == 0 ? each : 1;
}

}  // namespace

void settle_library_choice(const Plan& plan, const Machine& machine, Schedule& schedule) {
    if (!plan.all_reduce || !models::is_mpi_library(plan.all_reduce->name)) return;
    const models::MpiLibrary library = models::mpi_library(plan.all_reduce->name);
    const std::int64_t per_node = filled(machine, ranks(schedule.mesh));
    for (RankClass& rank_class : schedule.classes) {
        for (Step& step : rank_class.steps) {
            auto* sum = std::get_if<Communicate>(&step.action);
            if (sum == nullptr || !sum->of_bucket() || sum->kind != CollectiveKind::all_reduce) continue;
            const std::int64_t size = size_of(schedule.mesh, sum->axis);
            const std::int64_t apart = stride(schedule.mesh, sum->axis);
            const std::int64_t mates = per_node % apart == 0 ? std::min(size, per_node / apart) : 1;
            sum->algorithm = library.all_reduce(size, mates, size_of(sum->type) * static_cast<double>(sum->elements));
        }
    }
}

void settle_between_nodes(const Machine& machine, Schedule& schedule) {
    for (RankClass& rank_class : schedule.classes) {
        for (Step& step : rank_class.steps) {
            auto* sum = std::get_if<Communicate>(&step.action);
            if (sum == nullptr) continue;
            const Bytes whole = size_of(sum->type) * static_cast<double>(sum->elements);
            sum->algorithm = settled(std::move(sum->algorithm), machine, schedule.mesh, sum->axis, whole);
        }
    }
}

}  // namespace rehearse::schedule
