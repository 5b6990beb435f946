// SPDX-License-Identifier: Apache-2.0
#include "schedule/methods/server_memory.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <vector>

#include "core/index.hpp"
#include "core/methods/averaging.hpp"
#include "core/methods/servers.hpp"
#include "core/precision.hpp"

namespace rehearse::schedule {

namespace {

/// What one server has of the weights, and where pushes come in.
struct Shard {
    double elements = 0;
    Bytes buffers;
};

/// The trades of each class with servers.
std::vector<std::vector<const PushPull*>> trades_of(const Schedule& schedule) {
    std::vector<std::vector<const PushPull*>> trades;
    for (const RankClass& rank_class : schedule.classes) {
        std::vector<const PushPull*>& of_class = trades.emplace_back();
        for (const Step& step : rank_class.steps) {
            if (const auto* push_pull = std::get_if<PushPull>(&step.action)) of_class.push_back(push_pull);
        }
    }
    return trades;
}

/// By server. All workers (groups, or ranks along data) have the same weights: those of the first one are counted, and
/// buffers for each of them.
std::vector<Shard> shards_of(const Schedule& schedule) {
    const Mesh& mesh = schedule.mesh;
    const int groups = axis_index(mesh, "groups"), workers = groups >= 0 ? groups : axis_index(mesh, "data");
    const auto times = static_cast<double>(workers < 0 ? 1 : size_of(mesh, workers));
    const std::vector<std::vector<const PushPull*>> trades = trades_of(schedule);
    std::vector<Shard> shards(at(schedule.methods.get<Servers>().count));
    for (RankIndex rank{0}; rank < ranks(mesh); ++rank) {
        if (workers >= 0 && place_on(mesh, workers, rank) != 0) continue;
        std::set<int> counted;  // buckets: K-FAC may trade one several times a step
        std::map<int, Bytes> buffers;
        for (const PushPull* trade : trades[at(class_of(schedule, rank))]) {
            if (trade->group >= 0 && place_on(mesh, trade->group, rank) != 0) continue;
            if (counted.insert(trade->bucket).second)
                shards[at(trade->server)].elements += static_cast<double>(trade->received);
            const auto most = static_cast<double>(std::max(trade->sent, trade->received));
            buffers[trade->server] = std::max(buffers[trade->server], most * size_of(trade->type));
        }
        for (const auto& [server, buffer] : buffers) shards[at(server)].buffers += times * buffer;
    }
    return shards;
}

/// Numbers that a server keeps of each of its weights, beside the weight.
double numbers_beside(const Schedule& schedule) {
    const Averaging& averaging = schedule.methods.get<Averaging>();
    if (averaging.period == 0) return static_cast<double>(moments(schedule.optimizer));
    return averaging.momentum > 0 ? 1 : 0;  // where the average was before
}

}  // namespace

MemoryUse server_memory(const Schedule& schedule) {
    const Servers& servers = schedule.methods.get<Servers>();
    MemoryUse fullest;
    if (servers.count == 0 || schedule.classes.empty()) return fullest;
    const std::vector<Shard> shards = shards_of(schedule);
    const Bytes each = size_of(update_type(schedule.precision));
    for (std::int64_t s = 0; s < servers.count; ++s) {
        MemoryUse use;
        for (int copy = 0; copy < servers.copies; ++copy)
            use.weights += shards[at((s - copy + servers.count) % servers.count)].elements * each;
        use.optimizer = numbers_beside(schedule) * shards[at(s)].elements * each;
        use.communication = shards[at(s)].buffers;
        if (total(use) > total(fullest)) fullest = use;
    }
    return fullest;
}

}  // namespace rehearse::schedule
