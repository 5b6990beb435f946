// SPDX-License-Identifier: Apache-2.0
// What Adasum of updates means, written out for one rank: a model for each set of samples, with its own moments.
#include "core/index.hpp"
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

}  // namespace

Trained train_by_combined_updates(const SingleRank& single, RankIndex rank, int perturbation) {
    const Schedule& schedule = single.schedule();
    std::vector<std::unique_ptr<Program>> models;
    for (std::int64_t shard = 0; shard < shards(schedule.mesh); ++shard) models.push_back(single.model(perturbation));
    Program& own = *models[at(shard_of(schedule.mesh, rank))];
    Trained trained;
    for (int step = 0; step < single.options().steps; ++step) {
        const std::vector<std::vector<float>> before = single.result(own).weights;
        std::vector<std::vector<float>> changed;
        for (std::size_t shard = 0; shard < models.size(); ++shard) {
            Program& model = *models[shard];
            assign(model.tensors().gradients(),
                   single.gradients_of_shard(model, step, static_cast<std::int64_t>(shard), std::nullopt));
            single.update(model);
            changed.push_back(differences(before, model));
        }
        if (single.last(step)) trained.gradients = single.result(own).gradients;
        const std::vector<float> by = brought_together(schedule, own, {changed}, combining_by_adasum(), Of::shard);
        for (const auto& model : models) add_to_weights(before, by, *model);
    }
    trained.weights = single.result(own).weights;
    return trained;
}

}  // namespace rehearse::run
