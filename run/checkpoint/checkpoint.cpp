// SPDX-License-Identifier: Apache-2.0
// From what each rank holds to the whole network's state, and back.
#include "run/checkpoint/checkpoint.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <set>
#include <utility>

#include "core/error.hpp"
#include "core/index.hpp"
#include "core/kept_state.hpp"
#include "core/methods/lag.hpp"
#include "kernels/comm/idle.hpp"
#include "run/pieces.hpp"

namespace rehearse::run {

namespace {

/// Shapes of the running mean and variance.
std::int64_t statistics(const Op& op) {
    const auto* norm = std::get_if<BatchNorm>(&op);
    return norm == nullptr ? 0 : 2 * norm->channels;
}

/// Where a part's numbers lie among those of the whole: all of these, as they lie, or `at` says where each.
struct Places {
    bool all = false;
    std::size_t count = 0;
    std::vector<std::int64_t> at{};
};
Places places_at(std::vector<std::int64_t> where) { return {false, where.size(), std::move(where)}; }

/// A part's layer, where its numbers lie among those of the whole network's.
struct Placed {
    int layer = 0;  // of the part
    int whole = 0;
    Places weights{}, statistics{};
    bool own = true;  // no rank before along the data axis, nor a copy of its stage, has the same numbers
};

bool is_whole(const Schedule& schedule, const Origin& origin, const Layer& layer) {
    return origin.cuts.empty() && origin.tensor == 0 && !origin.transposed &&
           schedule.network.layers[at(origin.layer)].op == layer.op;
}

std::vector<Placed> placed(const Schedule& schedule, RankIndex rank) {
    const Part& part = schedule.classes[at(class_of(schedule, rank))].part;
    const std::vector<std::int64_t> along = places_on(schedule.mesh, rank);
    std::vector<Placed> all;
    for (std::size_t i = 0; i < part.network.layers.size(); ++i) {
        const Layer& layer = part.network.layers[i];
        const Origin& origin = part.origins[i];
        if (origin.layer < 0 || layer.weights_of >= 0) continue;
        Placed each{static_cast<int>(i), origin.layer};
        each.own = has_own(schedule, rank, {&origin, 1});
        const auto* norm = std::get_if<BatchNorm>(&schedule.network.layers[at(origin.layer)].op);
        if (is_whole(schedule, origin, layer)) {
            each.weights = {true, at(parameters(layer.op))};
            each.statistics = {true, at(statistics(layer.op))};
        } else {
            each.weights = places_at(indices_of_weights(schedule, origin, layer.op, along));
        }
        if (norm != nullptr && !each.statistics.all) {
            const std::int64_t channels = std::get<BatchNorm>(layer.op).channels;
            each.statistics = places_at(indices_of_statistics(schedule, origin, channels, along));
        }
        if (each.weights.count > 0 || each.statistics.count > 0) all.push_back(std::move(each));
    }
    return all;
}

/// The numbers of a layer in turn, with where each of them belongs: `use(vector of the whole, places, numbers)`.
template <typename Use>
void visit(LayerState& whole, const Placed& places, const Use& use) {
    use(whole.weights, places.weights);
    if (!whole.momentum.empty()) use(whole.momentum, places.weights);
    if (!whole.second_moment.empty()) use(whole.second_moment, places.weights);
    if (!whole.lagged.empty()) use(whole.lagged, places.weights);
    if (!whole.gradients.empty()) use(whole.gradients, places.weights);
    use(whole.statistics, places.statistics);
}

void append(std::vector<float>& all, const std::vector<float>& more) {
    all.insert(all.end(), more.begin(), more.end());
}

std::vector<float> unscaled(kernels::ConstView gradients, float scale) {
    std::vector<float> values = floats_of(gradients);
    for (float& value : values) value /= scale;
    return values;
}

/// What this rank has of what `whole` has, layer by layer in the order of `placed`.
std::vector<float> own_numbers(Program& program, const std::vector<Placed>& layers, const Checkpoint& whole,
                               float scale) {
    const float made_scale = program.state().made_scale;
    std::vector<float> numbers;
    for (const Placed& each : layers) {
        const Tensors::Parameters own =
            each.weights.count == 0 ? Tensors::Parameters{} : program.tensors().parameters_of(each.layer);
        const LayerState& kept = whole.layers[at(each.whole)];
        append(numbers, floats_of(own.weights));
        if (!kept.momentum.empty()) append(numbers, floats_of(own.momentum));
        if (!kept.second_moment.empty()) append(numbers, floats_of(own.second_moment));
        if (!kept.lagged.empty()) append(numbers, unscaled(own.applied, made_scale));
        if (!kept.gradients.empty()) append(numbers, unscaled(own.applied, scale));
        const std::span<const float> state = program.tensors().layer(each.layer).state;
        numbers.insert(numbers.end(), state.begin(), state.end());
    }
    return numbers;
}

void take_numbers(std::span<const float> numbers, const std::vector<Placed>& layers, Checkpoint& checkpoint) {
    std::size_t next = 0;
    for (const Placed& each : layers) {
        visit(checkpoint.layers[at(each.whole)], each, [&](std::vector<float>& whole, const Places& places) {
            const std::span<const float> own = numbers.subspan(next, places.count);
            next += places.count;
            if (places.all) std::ranges::copy(own, whole.begin());
            for (std::size_t i = 0; i < places.at.size(); ++i) {
                if (places.at[i] != padding) whole.at(at(places.at[i])) = own[i];
            }
        });
    }
    require(next == numbers.size(), "a rank's numbers are those of its layers");
}

/// The layers whose numbers this rank brings.
std::vector<Placed> brought(const Schedule& schedule, RankIndex rank) {
    std::vector<Placed> all = placed(schedule, rank);
    std::erase_if(all, [](const Placed& each) { return !each.own; });
    return all;
}

/// Whether a rank is the first of those that sum the gradients of a layer.
bool is_first_of_sum(const Schedule& schedule, RankIndex rank, int layer) {
    for (const Bucket& bucket : schedule.classes[at(class_of(schedule, rank))].part.buckets) {
        if (std::ranges::find(bucket.layers, layer) == bucket.layers.end()) continue;
        return bucket.axis < 0 || place_on(schedule.mesh, bucket.axis, rank) == 0;
    }
    return true;
}

/// Of the gradients a rank has the sums of its shard only.
bool own_sums_only(const RankClass& rank_class) {
    return std::ranges::any_of(rank_class.steps, [](const Step& step) {
        const auto* sum = std::get_if<Communicate>(&step.action);
        return sum != nullptr && sum->kind == CollectiveKind::reduce_scatter;
    });
}

/// Where each rank has what it updates only, all get it all.
void join_shards(const kernels::Communicator& world, const Schedule& schedule, Program& program) {
    std::map<int, kernels::Communicator> groups = groups_of_buckets(world, schedule);
    const RankClass& own = schedule.classes[at(class_of(schedule, RankIndex{world.rank()}))];
    for (const Step& step : own.steps) {
        const auto* update = std::get_if<Update>(&step.action);
        if (update == nullptr || update->sharded < 0) continue;
        const BucketTensors& bucket = program.tensors().bucket(update->bucket);
        kernels::Communicator& group = groups.at(update->sharded);
        join_pieces(group, bucket.weights);
        join_pieces(group, bucket.momentum);
        if (!bucket.second_moment.empty()) join_pieces(group, bucket.second_moment);
        if (schedule.methods.get<Lag>().steps > 0 && own_sums_only(own)) join_pieces(group, bucket.applied);
    }
}

/// A rank without weights, like the first stage of a pipeline that only flattens, has counted no updates.
std::int64_t most_updates(const kernels::Communicator& world, std::int64_t own) {
    const auto count = static_cast<double>(own);  // exact to 2^53
    return static_cast<std::int64_t>(std::ranges::max(world.all_gather({&count, 1})));
}

void share(const kernels::Communicator& world, std::vector<float>& values) {
    world.broadcast(std::as_writable_bytes(std::span{values}), 0, kernels::considerate());
}

}  // namespace

std::string group_name(const std::string& layer) {
    std::string name = layer;
    std::ranges::replace(name, '/', '.');
    return name;
}

std::map<int, kernels::Communicator> groups_of_buckets(const kernels::Communicator& world, const Schedule& schedule) {
    std::set<int> axes;
    for (const RankClass& rank_class : schedule.classes) {
        for (const Bucket& bucket : rank_class.part.buckets) axes.insert(bucket.axis);
    }
    std::map<int, kernels::Communicator> groups;
    for (const int axis : axes) {
        if (axis < 0) continue;
        const RankIndex first = group_of(schedule.mesh, axis, RankIndex{world.rank()}).front();
        groups.emplace(axis, world.split(first, world.rank()));
    }
    return groups;
}

void join_pieces(kernels::Communicator& group, kernels::View pieces) {
    const auto count = static_cast<std::int64_t>(pieces.size());
    const Collective whole{CollectiveKind::all_gather, {}, {group.size(), group.size()}, count};
    group.run({whole, group.rank()}, {pieces.type(), {static_cast<std::byte*>(pieces.bytes()), pieces.size_bytes()}});
}

Checkpoint empty_checkpoint(const Schedule& schedule, With with) {
    Checkpoint empty{.network = schedule.network.name,
                     .optimizer = std::string{to_string(schedule.optimizer)},
                     .global_batch = global_batch(schedule)};
    for (const Layer& layer : schedule.network.layers) {
        LayerState& state = empty.layers.emplace_back();
        empty.names.push_back(layer.name);
        state.statistics.resize(at(statistics(layer.op)));
        if (layer.weights_of >= 0) continue;
        const std::size_t count = at(parameters(layer.op));
        state.weights.resize(count);
        const bool keeps = keeps_moments(schedule, static_cast<int>(empty.layers.size()) - 1);
        if (keeps) state.momentum.resize(count);
        if (keeps && moments(schedule.optimizer) > 1) state.second_moment.resize(count);
        if (schedule.methods.get<Lag>().steps > 0) state.lagged.resize(count);
        if (with == With::gradients) state.gradients.resize(count);
    }
    return empty;
}

Checkpoint gather(const kernels::Communicator& world, const Schedule& schedule, Program& program, With with,
                  float scale) {
    join_shards(world, schedule, program);
    Checkpoint checkpoint = empty_checkpoint(schedule, with);
    checkpoint.program = program.state();
    checkpoint.program.updates = most_updates(world, checkpoint.program.updates);
    const std::vector<Placed> layers = brought(schedule, RankIndex{world.rank()});
    std::vector<float> numbers = own_numbers(program, layers, checkpoint, scale);
    if (world.size() == 1) {
        take_numbers(numbers, layers, checkpoint);
        return checkpoint;
    }
    const std::vector<std::vector<std::byte>> all = world.gather(std::as_bytes(std::span{numbers}));
    for (std::size_t rank = 0; rank < all.size(); ++rank) {
        const RankIndex whose{rank};
        numbers.resize(all[rank].size() / sizeof(float));
        if (!numbers.empty()) std::memcpy(numbers.data(), all[rank].data(), all[rank].size());
        take_numbers(numbers, brought(schedule, whose), checkpoint);
    }
    return checkpoint;
}

void scatter(const kernels::Communicator& world, const Schedule& schedule, Checkpoint& checkpoint, Program& program) {
    world.broadcast(std::as_writable_bytes(std::span{&checkpoint.program, 1}), 0, kernels::considerate());
    world.broadcast(std::as_writable_bytes(std::span{&checkpoint.steps, 1}), 0, kernels::considerate());
    for (LayerState& layer : checkpoint.layers) {
        for (std::vector<float>* values :
             {&layer.weights, &layer.momentum, &layer.second_moment, &layer.lagged, &layer.statistics}) {
            if (!values->empty()) share(world, *values);
        }
    }
    take(schedule, RankIndex{world.rank()}, checkpoint, program);
}

void take(const Schedule& schedule, RankIndex rank, const Checkpoint& checkpoint, Program& program) {
    program.set_state(checkpoint.program);
    const float made_scale = program.state().made_scale;  // 1 where this run scales nothing
    for (const Placed& each : placed(schedule, rank)) {
        const LayerState& whole = checkpoint.layers[at(each.whole)];
        const auto taken = [](const std::vector<float>& values, const Places& places) {
            if (places.all) return values;
            std::vector<float> own;
            for (const std::int64_t place : places.at) own.push_back(place == padding ? 0 : values[at(place)]);
            return own;
        };
        const std::span<float> state = program.tensors().layer(each.layer).state;
        std::ranges::copy(taken(whole.statistics, each.statistics), state.begin());
        if (each.weights.count == 0) continue;
        const Tensors::Parameters own = program.tensors().parameters_of(each.layer);
        assign(own.weights, taken(whole.weights, each.weights));
        if (!whole.momentum.empty()) assign(own.momentum, taken(whole.momentum, each.weights));
        if (!whole.second_moment.empty()) assign(own.second_moment, taken(whole.second_moment, each.weights));
        if (whole.lagged.empty() || !is_first_of_sum(schedule, rank, each.layer))
            continue;  // their sum is one copy's and nothing from the others
        std::vector<float> lagged = taken(whole.lagged, each.weights);
        for (float& gradient : lagged) gradient *= made_scale;
        assign(own.gradients, lagged);
    }
    program.tensors().round_weights();
}

}  // namespace rehearse::run
