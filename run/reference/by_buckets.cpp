// SPDX-License-Identifier: Apache-2.0
#include "run/reference/by_buckets.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <set>
#include <utility>

#include "core/index.hpp"
#include "core/methods/compression.hpp"
#include "core/methods/lag.hpp"
#include "core/methods/sign_vote.hpp"
#include "run/pieces.hpp"

namespace rehearse::run {

namespace {

/// How far rounding reaches in each element: eight times the largest change of its layer, each change as its root mean
/// square.
std::vector<float> reach_of(const Places& places, std::span<const float> own,
                            std::span<const std::vector<float>> changed) {
    std::vector<float> reach(own.size());
    std::size_t begin = 0;
    for (const std::size_t end : places.ends) {
        double largest = 0;
        for (const std::vector<float>& other : changed) {
            double sum = 0;
            for (std::size_t i = begin; i < end; ++i) sum += std::pow(static_cast<double>(other[i]) - own[i], 2);
            largest = std::max(largest, sum);
        }
        const double mean = std::sqrt(largest / static_cast<double>(std::max<std::size_t>(end - begin, 1)));
        std::fill(reach.begin() + static_cast<std::ptrdiff_t>(begin), reach.begin() + static_cast<std::ptrdiff_t>(end),
                  static_cast<float>(allowance * mean));
        begin = end;
    }
    return reach;
}

}  // namespace

std::vector<std::int64_t> beginnings(Program& whole) {
    std::vector<std::int64_t> begins;
    const kernels::View all = whole.tensors().gradients();
    for (std::size_t i = 0; i < whole.part().network.layers.size(); ++i) {
        const kernels::View own = whole.tensors().layer(static_cast<int>(i)).gradients;
        begins.push_back(own.empty() ? -1 : own.data() - all.data());
    }
    return begins;
}

Places places_of(const Schedule& schedule, const std::vector<std::int64_t>& begins, RankIndex rank, int bucket) {
    const Part& part = schedule.classes[at(class_of(schedule, rank))].part;
    const std::vector<std::int64_t> along = places_on(schedule.mesh, rank);
    Places places;
    for (const int layer : part.buckets[at(bucket)].layers) {
        const Origin& origin = part.origins[at(layer)];
        const Op& op = part.network.layers[at(layer)].op;
        for (const std::int64_t place : indices_of_weights(schedule, origin, op, along)) {
            places.of.push_back(place == padding ? padding : begins[at(origin.layer)] + place);
        }
        places.ends.push_back(places.of.size());
    }
    return places;
}

Combine summing() {
    return [](std::span<const RankIndex> /*ranks*/, int /*bucket*/, const Own& own) {
        std::vector<double> sum(own.gradients.front().size());
        for (const std::vector<float>& one : own.gradients) {
            for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += one[i];
        }
        return std::vector<float>(sum.begin(), sum.end());
    };
}

Combined combined_by(const SingleRank& single, int perturbation) {
    const Schedule& schedule = single.schedule();
    if (schedule.methods.get<Compression>() != Compression{}) return {compressing(single, perturbation)};
    if (schedule.methods.get<SignVote>().on) return {voting(single, perturbation)};
    if (std::ranges::any_of(schedule.classes, combines_gradients)) return {combining_by_adasum(), Of::shard};
    return {summing()};
}

std::vector<float> brought_together(const SingleRank& single, Program& whole, const BatchGradients& made,
                                    const Combine& combine, Of of) {
    const Schedule& schedule = single.schedule();
    const Mesh& mesh = schedule.mesh;
    const std::vector<std::int64_t> begins = beginnings(whole);
    std::vector<float> result(made.by_part.front().size());
    const auto all = static_cast<double>(global_batch(schedule));
    for (RankIndex rank{0}; rank < ranks(mesh); ++rank) {
        const std::vector<Bucket>& buckets = schedule.classes[at(class_of(schedule, rank))].part.buckets;
        for (int b = 0; b < static_cast<int>(buckets.size()); ++b) {
            const int axis = buckets[at(b)].axis;
            if (axis >= 0 && place_on(mesh, axis, rank) > 0) continue;  // with the first of its group
            const Places places = places_of(schedule, begins, rank, b);
            std::vector<RankIndex> group;  // of ranks that share samples, whose gradients are summed before, the first
            Own own;
            std::set<std::int64_t> counted;
            for (const RankIndex member : axis < 0 ? std::vector{rank} : group_of(mesh, axis, rank)) {
                std::set<std::int64_t> made_by = single.parts_in(axis, member);
                const auto all_of_them = static_cast<double>(made_by.size());
                std::erase_if(made_by, [&](std::int64_t part) { return !counted.insert(part).second; });
                if (made_by.empty()) continue;
                const auto sum_of = [&](const std::vector<std::vector<float>>& by_part) {
                    std::vector<double> sum(places.of.size());
                    for (const std::int64_t part : made_by) {
                        const auto samples = static_cast<double>(samples_of(schedule, part / single.turns()));
                        const double weight =
                            of == Of::shard ? 1 / all_of_them : samples / static_cast<double>(single.turns()) / all;
                        for (std::size_t i = 0; i < sum.size(); ++i) {
                            if (places.of[i] != padding) sum[i] += weight * by_part[at(part)][at(places.of[i])];
                        }
                    }
                    return std::vector<float>(sum.begin(), sum.end());
                };
                group.push_back(member);
                own.gradients.push_back(sum_of(made.by_part));
                std::vector<std::vector<float>> changed;
                std::ranges::transform(made.changed, std::back_inserter(changed), sum_of);
                own.reach.push_back(reach_of(places, own.gradients.back(), changed));
            }
            const std::vector<float> together = group.size() == 1 ? own.gradients.front() : combine(group, b, own);
            for (std::size_t i = 0; i < places.of.size(); ++i) {
                if (places.of[i] != padding) result[at(places.of[i])] = together[i];
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
    BatchGradients before;  // of the step before
    before.by_part.assign(at(single.parts()), std::vector<float>(model->tensors().gradients().size()));
    // What a checkpoint has of it, ranks have brought together already.
    std::vector<float> together;
    if (lag > 0 && single.options().first_step() > 0) together = floats_of(model->tensors().gradients());
    Trained trained;
    for (int step = single.options().first_step(); step < single.options().steps; ++step) {
        std::vector<std::vector<float>> after{floats_of(weights)};  // so many updates of this step
        for (int m = 0; m < updates; ++m) {
            if (single.asynchronous()) single.put_stale_weights(*model, after, m);
            BatchGradients made =
                single.gradients_of_parts(*model, step, updates > 1 ? std::optional{m} : std::nullopt, perturbation);
            assign(weights, after.back());
            if (lag > 0) std::swap(made, before);
            assign(model->tensors().gradients(), together.empty() ? brought_together(single, *model, made, combine, of)
                                                                  : std::exchange(together, {}));
            if (single.last(step)) trained.gradients = single.result(*model).gradients;
            if (step >= lag) single.update(*model);
            after.push_back(floats_of(weights));
        }
    }
    trained.weights = single.result(*model).weights;
    return trained;
}

}  // namespace rehearse::run
