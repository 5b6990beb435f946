// SPDX-License-Identifier: Apache-2.0
#include "run/methods/workers.hpp"

#include <algorithm>

#include "core/error.hpp"
#include "core/index.hpp"
#include "core/methods/averaging.hpp"
#include "core/methods/servers.hpp"

namespace rehearse::run {

namespace {

/// Along which workers lie; -1: there is one.
int worker_axis(const Mesh& mesh) {
    const int groups = axis_index(mesh, "groups");
    return groups >= 0 ? groups : axis_index(mesh, "data");
}

RankIndex with_worker(const Mesh& mesh, RankIndex rank, std::int64_t worker) {
    std::vector<std::int64_t> coordinates = rehearse::coordinates(mesh, rank);
    if (const int axis = worker_axis(mesh); axis >= 0) coordinates[at(axis)] = worker;
    return rank_at(mesh, coordinates);
}

}  // namespace

std::int64_t workers(const Mesh& mesh) {
    const int axis = worker_axis(mesh);
    return axis < 0 ? 1 : size_of(mesh, axis);
}

RankIndex worker_of(const Mesh& mesh, RankIndex rank) {
    const int axis = worker_axis(mesh);
    return with_worker(mesh, RankIndex{0}, axis < 0 ? 0 : place_on(mesh, axis, rank));
}

RankIndex alike_of_first(const Mesh& mesh, RankIndex rank) { return with_worker(mesh, rank, 0); }

bool shares_layers(const Schedule& schedule) {
    const bool axes = std::ranges::any_of(schedule.mesh.axes, [](const Axis& axis) {
        return axis.name != "data" && axis.name != "groups" && axis.name != "pipe" && axis.size > 1;
    });
    return axes || std::ranges::any_of(schedule.classes, [](const RankClass& rank_class) {
               return std::ranges::any_of(rank_class.part.origins,
                                          [](const Origin& origin) { return !origin.cuts.empty(); });
           });
}

bool pushes(const Mesh& mesh, RankIndex rank, const PushPull& push_pull) {
    return push_pull.group < 0 || place_on(mesh, push_pull.group, rank) == 0;
}

std::vector<const PushPull*> pushes_of(const Schedule& schedule, RankIndex rank) {
    std::vector<const PushPull*> found;
    for (const Step& step : schedule.classes[at(class_of(schedule, rank))].steps) {
        const auto* push_pull = std::get_if<PushPull>(&step.action);
        if (push_pull != nullptr && pushes(schedule.mesh, rank, *push_pull)) found.push_back(push_pull);
    }
    return found;
}

std::vector<RankIndex> pushing_ranks(const Schedule& schedule) {
    std::vector<RankIndex> result;
    for (RankIndex rank{0}; rank < ranks(schedule.mesh); ++rank) {
        if (!pushes_of(schedule, rank).empty()) result.push_back(rank);
    }
    return result;
}

std::vector<RankIndex> pushing_ranks_of(const Schedule& schedule, int stage) {
    std::vector<RankIndex> result;
    for (const RankIndex rank : pushing_ranks(schedule)) {
        if (alike_of_first(schedule.mesh, rank) == rank && stage_of(schedule, rank).stage == stage)
            result.push_back(rank);
    }
    return result;
}

const RankClass& class_of_stage(const Schedule& schedule, int stage) {
    RankIndex rank{0};
    while (stage_of(schedule, rank).stage != stage) ++rank;
    return schedule.classes[at(class_of(schedule, rank))];
}

Schedule kept_by_server(const Schedule& schedule, int server, RankIndex rank) {
    const RankClass& own = schedule.classes[at(class_of(schedule, rank))];
    for (RankIndex other{0}; other < ranks(schedule.mesh); ++other) {
        if (stage_of(schedule, other).stage != stage_of(schedule, rank).stage) continue;
        const RankClass& theirs =
            schedule.classes[at(class_of(schedule, other))];  // which has another share of the batch
        require(std::ranges::equal(theirs.part.buckets, own.part.buckets, {}, &Bucket::layers, &Bucket::layers),
                "workers have one network");
    }
    Schedule kept = schedule;
    kept.classes = {own};
    kept.class_axes.clear();
    kept.shares = {};
    kept.methods.edit<Servers>() = {};
    kept.micro_batches = 1;
    kept.batch_per_rank = 1;
    RankClass& all = kept.classes.front();
    all.steps.clear();
    all.slots = 1;
    for (Bucket& bucket : all.part.buckets) bucket.axis = -1;
    for (const Step& step : own.steps) {
        const auto* push_pull = std::get_if<PushPull>(&step.action);
        const bool updates = push_pull != nullptr && kept.methods.get<Averaging>().period == 0 &&
                             (server < 0 || push_pull->server == server) && pushes(schedule.mesh, rank, *push_pull);
        if (!updates) continue;
        all.steps.push_back({step.name, Stream::compute, Update{push_pull->bucket, push_pull->work.back()}, {}});
    }
    return kept;
}

}  // namespace rehearse::run
