// SPDX-License-Identifier: Apache-2.0
// What Adasum of updates means, written out for one rank: a model for each part of the batch, with its own moments.
#include <set>

#include "core/index.hpp"
#include "core/methods/bilevel.hpp"
#include "run/pieces.hpp"
#include "run/reference/by_buckets.hpp"

namespace rehearse::run {

namespace {

/// Puts `weights + by` into the weights of `model`, where `by` lies as its gradients do.
void add_to_weights(const std::vector<std::vector<float>>& weights, const std::vector<float>& by, Program& model) {
    const std::vector<Layer>& layers = model.part().network.layers;
    const kernels::View gradients = model.tensors().gradients();
    const std::vector<float> own = floats_of(gradients);
    assign(gradients, by);
    for (std::size_t i = 0; i < weights.size(); ++i) {
        if (parameters(layers[i].op) == 0 || layers[i].weights_of >= 0) continue;
        const LayerTensors layer = model.tensors().layer(static_cast<int>(i));
        const std::vector<float> changed = floats_of(layer.gradients);
        std::vector<float> sum = weights[i];
        for (std::size_t k = 0; k < sum.size(); ++k) sum[k] += changed[k];
        assign(layer.weights, sum);
    }
    assign(gradients, own);
}

/// By how much the weights of `model` are apart from `weights`, laid out as its gradients, which stay as they are.
std::vector<float> differences(const std::vector<std::vector<float>>& weights, Program& model) {
    const std::vector<Layer>& layers = model.part().network.layers;
    const kernels::View gradients = model.tensors().gradients();
    const std::vector<float> own = floats_of(gradients);
    for (std::size_t i = 0; i < weights.size(); ++i) {
        if (parameters(layers[i].op) == 0 || layers[i].weights_of >= 0) continue;
        const LayerTensors layer = model.tensors().layer(static_cast<int>(i));
        std::vector<float> apart = floats_of(layer.weights);
        for (std::size_t k = 0; k < apart.size(); ++k) apart[k] -= weights[i][k];
        assign(layer.gradients, apart);
    }
    std::vector<float> made = floats_of(gradients);
    assign(gradients, own);
    return made;
}

/// The gradients that ranks have of the part that a model is of: its own, and where they have made them together with
/// other parts' (a copy of a stage, ranks that share experts or dense layers), the mean over all of these. Laid out as
/// those of `program`, as which `by_part` lie.
std::vector<float> made_with_others(const SingleRank& single, Program& program, std::int64_t part,
                                    const std::vector<std::vector<float>>& by_part) {
    const Schedule& schedule = single.schedule();
    const std::vector<std::int64_t> begins = beginnings(program);
    std::vector<float> made = by_part[at(part)];
    for (RankIndex rank{0}; rank < ranks(schedule.mesh); ++rank) {
        const std::vector<Bucket>& buckets = schedule.classes[at(class_of(schedule, rank))].part.buckets;
        for (int b = 0; b < static_cast<int>(buckets.size()); ++b) {
            const std::set<std::int64_t> together = single.parts_in(buckets[at(b)].axis, rank);
            if (together.size() == 1 || !together.contains(part)) continue;
            for (const std::int64_t place : places_of(schedule, begins, rank, b).of) {
                if (place == padding) continue;
                double sum = 0;
                for (const std::int64_t each : together) sum += by_part[at(each)][at(place)];
                made[at(place)] = static_cast<float>(sum / static_cast<double>(together.size()));
            }
        }
    }
    return made;
}

}  // namespace

// The models have the same weights before each of their updates, of which a step has one, or one after each micro-batch
// (of a half of the weights, or by gradients at the weights that stages had then).
Trained train_by_combined_updates(const SingleRank& single, RankIndex rank, int perturbation) {
    const Schedule& schedule = single.schedule();
    const bool in_halves = schedule.methods.get<Bilevel>().on, stale = single.asynchronous();
    const int updates = in_halves || stale ? schedule.micro_batches : 1;
    std::vector<std::unique_ptr<Program>> models;
    for (std::int64_t part = 0; part < single.parts(); ++part) models.push_back(single.model(perturbation));
    Program& own = *models[at(shard_of(schedule.mesh, rank) * single.turns() + stage_of(schedule, rank).copy)];
    Trained trained;
    for (int step = 0; step < single.options().steps; ++step) {
        std::vector<std::vector<float>> after{floats_of(own.tensors().weights())};
        for (int m = 0; m < updates; ++m) {
            const std::vector<std::vector<float>> before = single.result(own).weights;
            if (stale) single.put_stale_weights(own, after, m);
            const std::vector<std::vector<float>> by_part =
                single.gradients_of_parts(own, step, updates > 1 ? std::optional{m} : std::nullopt, 1).by_part;
            assign(own.tensors().weights(), after.back());
            std::vector<std::vector<float>> changed;
            for (std::int64_t part = 0; part < single.parts(); ++part) {
                Program& model = *models[at(part)];
                assign(model.tensors().gradients(), made_with_others(single, model, part, by_part));
                if (&model == &own && in_halves) take_half(single, own, m, trained.gradients);
                if (in_halves) {
                    update_half(single, model, step, m);
                } else {
                    single.update(model);
                }
                changed.push_back(differences(before, model));
            }
            if (single.last(step) && !in_halves) trained.gradients = single.result(own).gradients;
            const std::vector<float> by = brought_together(single, own, {changed}, combining_by_adasum(), Of::shard);
            for (const auto& model : models) add_to_weights(before, by, *model);
            after.push_back(floats_of(own.tensors().weights()));
        }
    }
    trained.weights = single.result(own).weights;
    return trained;
}

}  // namespace rehearse::run
