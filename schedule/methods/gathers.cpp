// SPDX-License-Identifier: Apache-2.0
#include "schedule/methods/gathers.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/index.hpp"
#include "schedule/step_context.hpp"

namespace rehearse::schedule {

namespace {

/// Steps of the compute stream that follow each other and read the weights of one bucket; the step that updated these
/// before, in the same step of training.
struct Use {
    int bucket = none, first = 0, last = 0, updated = none;
};

std::vector<Use> uses_of(const Mesh& mesh, const RankClass& rank_class) {
    const std::vector<int> used = buckets_used(rank_class);
    std::vector<Use> uses;
    std::vector<int> updated(rank_class.part.buckets.size(), none);
    for (std::size_t i = 0; i < used.size(); ++i) {
        const auto* update = std::get_if<Update>(&rank_class.steps[i].action);
        if (update != nullptr) updated[at(update->bucket)] = static_cast<int>(i);
        if (used[i] == none) continue;
        const int axis = rank_class.part.buckets[at(used[i])].axis;
        if (axis == none || size_of(mesh, axis) == 1) continue;
        const auto step = static_cast<int>(i);
        const int last_update = updated[at(used[i])];
        if (uses.empty() || uses.back().bucket != used[i] || uses.back().updated != last_update)
            uses.push_back({used[i], step, step, last_update});
        uses.back().last = step;
    }
    return uses;
}

/// A gather to be put before step `before`, for the steps from `first` on, once step `after` has ended.
struct Gather {
    int before = 0, first = 0, after = none;
    Step step;
};

/// A bucket may be gathered more than once a micro-batch and pass where layers share weights.
std::string unique_name(std::string name, std::set<std::string>& names) {
    while (!names.insert(name).second) name += "+";
    return name;
}

std::vector<Gather> gathers_of(const Mesh& mesh, const std::map<int, Algorithm>& algorithms,
                               const std::vector<Use>& uses, DataType type, const RankClass& rank_class) {
    std::vector<Gather> gathers;
    std::set<std::string> names;
    for (std::size_t r = 0; r < uses.size(); ++r) {
        if (r >= 2 && uses[r].bucket == uses[r - 2].bucket && uses[r].updated == uses[r - 2].updated) continue;
        const auto& compute = std::get<Compute>(rank_class.steps[at(uses[r].first)].action);
        Communicate action{.kind = CollectiveKind::all_gather,
                           .axis = AxisIndex{rank_class.part.buckets[at(uses[r].bucket)].axis},
                           .elements = rank_class.part.buckets[at(uses[r].bucket)].elements,
                           .type = type,
                           .algorithm = algorithms.at(rank_class.part.buckets[at(uses[r].bucket)].axis),
                           .of = BucketIndex{uses[r].bucket},
                           .micro_batch = compute.micro_batch};
        std::string name =
            fmt::format("bucket{}:allgather:{}#{}", uses[r].bucket,
                        compute.problem.pass == Pass::forward ? "forward" : "backward", compute.micro_batch);
        Step step{unique_name(std::move(name), names), gradient_stream(mesh, action.axis), std::move(action), {}};
        const int after = std::max(r < 2 ? none : uses[r - 2].last, uses[r].updated);
        gathers.push_back({after == none ? uses[0].first : after + 1, uses[r].first, after, std::move(step)});
    }
    return gathers;
}

}  // namespace

std::vector<int> buckets_used(const RankClass& rank_class) {
    const std::vector<Layer>& layers = rank_class.part.network.layers;
    std::vector<int> bucket_of(layers.size(), none);
    for (std::size_t b = 0; b < rank_class.part.buckets.size(); ++b) {
        for (const int layer : rank_class.part.buckets[b].layers) bucket_of[at(layer)] = static_cast<int>(b);
    }
    for (std::size_t i = 0; i < layers.size(); ++i) {
        if (layers[i].weights_of >= 0) bucket_of[i] = bucket_of[at(layers[i].weights_of)];
    }
    std::vector<int> used;
    for (const Step& step : rank_class.steps) {
        const auto* compute = std::get_if<Compute>(&step.action);
        used.push_back(compute == nullptr ? none : bucket_of[at(compute->layer)]);
    }
    return used;
}

void gather_weights(const Mesh& mesh, const std::map<int, Algorithm>& algorithms, DataType type,
                    RankClass& rank_class) {
    std::vector<Gather> gathers = gathers_of(mesh, algorithms, uses_of(mesh, rank_class), type, rank_class);
    std::vector<Step> made;
    std::vector<int> moved_to(rank_class.steps.size());
    std::vector<std::pair<int, int>> waits;  // the first step that reads what is gathered, and the gather
    auto gather = gathers.begin();
    for (std::size_t i = 0; i < rank_class.steps.size(); ++i) {
        for (; gather != gathers.end() && gather->before <= static_cast<int>(i); ++gather) {
            if (gather->after != none) gather->step.after = {moved_to[at(gather->after)]};
            waits.push_back({gather->first, static_cast<int>(made.size())});
            made.push_back(std::move(gather->step));
        }
        moved_to[i] = static_cast<int>(made.size());
        Step& step = made.emplace_back(std::move(rank_class.steps[i]));
        for (int& before : step.after) before = moved_to[at(before)];
    }
    for (const auto& [first, waited_for] : waits) {
        std::vector<int>& after = made[at(moved_to[at(first)])].after;
        after.push_back(waited_for);
        std::ranges::sort(after);
    }
    rank_class.steps = std::move(made);
}

std::int64_t most_gathered(const RankClass& rank_class) {
    const std::vector<int> used = buckets_used(rank_class);
    std::vector<std::int64_t> change(used.size() + 1);  // of what is held, step by step
    std::vector<int> gathered(rank_class.part.buckets.size(), none), last(gathered.size(), none);
    const auto release = [&](std::size_t bucket) {
        if (gathered[bucket] == none) return;
        change[at(gathered[bucket])] += rank_class.part.buckets[bucket].elements;
        change[at(last[bucket]) + 1] -= rank_class.part.buckets[bucket].elements;
    };
    for (std::size_t i = 0; i < used.size(); ++i) {
        const auto* action = std::get_if<Communicate>(&rank_class.steps[i].action);
        if (used[i] != none) last[at(used[i])] = static_cast<int>(i);
        if (action == nullptr || !action->of_bucket() || action->kind != CollectiveKind::all_gather) continue;
        if (action->content != Content::usual) continue;
        release(at(action->bucket()));
        gathered[at(action->bucket())] = last[at(action->bucket())] = static_cast<int>(i);
    }
    for (std::size_t b = 0; b < gathered.size(); ++b) release(b);
    std::int64_t held = 0, most = 0;
    for (const std::int64_t step : change) most = std::max(most, held += step);
    return most;
}

}  // namespace rehearse::schedule
