// SPDX-License-Identifier: Apache-2.0
#include "run/reference/by_buckets.hpp"

#include <algorithm>
#include <set>
#include <utility>

#include "core/index.hpp"
#include "core/methods/compression.hpp"
#include "core/methods/lag.hpp"
#include "core/methods/sign_vote.hpp"
#include "run/pieces.hpp"

namespace rehearse::run {

namespace {

/// Where the gradients of each layer of the whole network begin among all of them.
std::vector<std::int64_t> beginnings(Program& whole) {
    std::vector<std::int64_t> begins;
    const kernels::View all = whole.tensors().gradients();
    for (std::size_t i = 0; i < whole.part().network.layers.size(); ++i) {
        const kernels::View own = whole.tensors().layer(static_cast<int>(i)).gradients;
        begins.push_back(own.empty() ? -1 : own.data() - all.data());
    }
    return begins;
}

/// Where each element of a rank's bucket lies among the gradients of the whole network, or `padding`.
std::vector<std::int64_t> places_of(const Schedule& schedule, const std::vector<std::int64_t>& begins, RankIndex rank,
                                    int bucket) {
    const Part& part = schedule.classes[at(class_of(schedule, rank))].part;
    const std::vector<std::int64_t> coordinates = rehearse::coordinates(schedule.mesh, rank);
    std::vector<std::int64_t> places;
    for (const int layer : part.buckets[at(bucket)].layers) {
        const Origin& origin = part.origins[at(layer)];
        const Op& op = part.network.layers[at(layer)].op;
        for (const std::int64_t place : indices_of_weights(schedule, origin, op, coordinates)) {
            places.push_back(place == padding ? padding : begins[at(origin.layer)] + place);
        }
    }
    return places;
}

}  // namespace

Combine summing() {
    return [](std::span<const RankIndex> /*ranks*/, int /*bucket*/, const std::vector<std::vector<float>>& own) {
        std::vector<double> sum(own.front().size());
        for (const std::vector<float>& one : own) {
            for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += one[i];
        }
        return std::vector<float>(sum.begin(), sum.end());
    };
}

Combined combined_by(const Schedule& schedule) {
    if (schedule.methods.get<Compression>() != Compression{}) return {compressing(schedule)};
    if (schedule.methods.get<SignVote>().on) return {voting()};
    if (std::ranges::any_of(schedule.classes, combines_gradients)) return {combining_by_adasum(), Of::shard};
    return {summing()};
}

std::vector<float> brought_together(const Schedule& schedule, Program& whole,
                                    const std::vector<std::vector<float>>& by_shard, const Combine& combine, Of of) {
    const Mesh& mesh = schedule.mesh;
    const std::vector<std::int64_t> begins = beginnings(whole);
    std::vector<float> result(by_shard.front().size());
    const auto all = static_cast<double>(global_batch(schedule));
    for (RankIndex rank{0}; rank < ranks(mesh); ++rank) {
        const std::vector<Bucket>& buckets = schedule.classes[at(class_of(schedule, rank))].part.buckets;
        for (int b = 0; b < static_cast<int>(buckets.size()); ++b) {
            const int axis = buckets[at(b)].axis;
            if (axis >= 0 && place_on(mesh, axis, rank) > 0) continue;  // with the first of its group
            const std::vector<std::int64_t> places = places_of(schedule, begins, rank, b);
            std::vector<RankIndex> group;  // of ranks that share samples, whose gradients are summed before, the first
            std::vector<std::vector<float>> own;
            std::set<std::int64_t> counted;
            for (const RankIndex member : axis < 0 ? std::vector{rank} : group_of(mesh, axis, rank)) {
                std::vector<double> sum(places.size());
                const std::size_t before = counted.size();
                const std::set<std::int64_t> made_by = shards_in(mesh, axis, member);
                for (const std::int64_t shard : made_by) {
                    if (!counted.insert(shard).second) continue;
                    const double weight = of == Of::shard ? 1 / static_cast<double>(made_by.size())
                                                          : static_cast<double>(samples_of(schedule, shard)) / all;
                    for (std::size_t i = 0; i < places.size(); ++i) {
                        if (places[i] != padding) sum[i] += weight * by_shard[at(shard)][at(places[i])];
                    }
                }
                if (counted.size() == before) continue;
                group.push_back(member);
                own.emplace_back(sum.begin(), sum.end());
            }
            const std::vector<float> made = group.size() == 1 ? own.front() : combine(group, b, own);
            for (std::size_t i = 0; i < places.size(); ++i) {
                if (places[i] != padding) result[at(places[i])] = made[i];
            }
        }
    }
    return result;
}

// What PipeDream means (Narayanan et al. 2019, section 3.3): the gradients of micro-batch m, on the samples that all
// copies of the network take as their m-th, are those at the weights that stage s has after max(0, m - (stages - 1 -
// s)) updates; they are the next update of every stage.
Trained train_by_buckets(const SingleRank& single, int perturbation, const Combine& combine, Of of) {
    const Schedule& schedule = single.schedule();
    const std::unique_ptr<Program> model = single.model(perturbation);
    const int lag = schedule.methods.get<Lag>().steps;
    const int updates = single.asynchronous() ? schedule.micro_batches : 1;
    const kernels::View weights = model->tensors().weights();
    std::vector<std::vector<float>> before(at(shards(schedule.mesh)),  // gradients of the step before
                                           std::vector<float>(model->tensors().gradients().size()));
    Trained trained;
    for (int step = 0; step < single.options().steps; ++step) {
        std::vector<std::vector<float>> after{floats_of(weights)};  // so many updates of this step
        for (int m = 0; m < updates; ++m) {
            if (single.asynchronous()) single.put_stale_weights(*model, after, m);
            std::vector<std::vector<float>> made;
            for (std::int64_t shard = 0; shard < shards(schedule.mesh); ++shard) {
                made.push_back(
                    single.gradients_of_shard(*model, step, shard, updates > 1 ? std::optional{m} : std::nullopt));
            }
            assign(weights, after.back());
            if (lag > 0) std::swap(made, before);
            assign(model->tensors().gradients(), brought_together(schedule, *model, made, combine, of));
            if (single.last(step)) trained.gradients = single.result(*model).gradients;
            if (step >= lag) single.update(*model);
            after.push_back(floats_of(weights));
        }
    }
    trained.weights = single.result(*model).weights;
    return trained;
}

}  // namespace rehearse::run
