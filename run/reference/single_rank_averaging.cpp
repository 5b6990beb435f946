// SPDX-License-Identifier: Apache-2.0
// What models of the ranks' own, and their average, mean: local SGD, elastic averaging, learners.
#include <algorithm>

#include "core/index.hpp"
#include "core/methods/averaging.hpp"
#include "core/methods/curvature.hpp"
#include "core/weight_versions.hpp"
#include "run/reference/single_rank.hpp"
#include "run/reference/written_out_curvature.hpp"

namespace rehearse::run {

namespace {

/// The models that local SGD and elastic averaging train, and their average.
struct Models {
    const Averaging& averaging;
    std::vector<std::unique_ptr<Program>> models;
    std::vector<double> average, last;
    std::vector<double> shares{};  // by model, of the samples

    explicit Models(const Averaging& of) : averaging(of) {}
    std::span<float> weights(std::size_t model) const { return models[model]->tensors().weights(); }

    void begin() {
        average.assign(weights(0).begin(), weights(0).end());
        last = average;
    }
    /// x_i -= a (x_i - z), z += a sum (x_i - z) + m (z - z_before), all of x and z as they were at the beginning of the
    /// step (Zhang et al. 2015, algorithm 1 for all workers at once; m: Koliousis et al. 2019).
    std::vector<std::vector<double>> differences() const {
        std::vector<std::vector<double>> all;
        for (std::size_t i = 0; i < models.size(); ++i) {
            auto& own = all.emplace_back(average.size());
            for (std::size_t k = 0; k < own.size(); ++k) own[k] = weights(i)[k] - average[k];
        }
        return all;
    }
    void pull(std::size_t model, const std::vector<double>& difference) const {
        for (std::size_t k = 0; k < difference.size(); ++k) {
            weights(model)[k] = static_cast<float>(weights(model)[k] - averaging.elastic * difference[k]);
        }
    }
    void move_average(const std::vector<std::vector<double>>& all) {
        for (std::size_t k = 0; k < average.size(); ++k) {
            const double before = average[k];
            double sum = 0;
            for (const auto& own : all) sum += own[k];
            average[k] += averaging.elastic * sum + averaging.momentum * (average[k] - last[k]);
            last[k] = before;
        }
    }
    void replace() const {
        for (std::size_t k = 0; k < average.size(); ++k) {
            double sum = 0;
            for (std::size_t i = 0; i < models.size(); ++i) sum += shares[i] * weights(i)[k];
            for (std::size_t i = 0; i < models.size(); ++i) weights(i)[k] = static_cast<float>(sum);
        }
    }
};

}  // namespace

Trained train_models(const SingleRank& single, RankIndex rank, int perturbation) {
    const Schedule& schedule = single.schedule();
    const ReferenceOptions& options = single.options();
    Models all{schedule.methods.get<Averaging>()};
    const std::int64_t learners = schedule.methods.get<Averaging>().learners;
    for (std::int64_t i = 0; i < learners * shards(schedule.mesh); ++i) {
        all.models.push_back(single.model(perturbation));
        all.shares.push_back(static_cast<double>(samples_of(schedule, i / learners)) /
                             static_cast<double>(learners * global_batch(schedule)));
    }
    all.begin();
    const bool elastic = schedule.methods.get<Averaging>().elastic > 0;
    const std::int64_t parts = schedule.micro_batches;
    const auto takes = [&](std::int64_t shard, int step, std::int64_t part, std::int64_t learner) {
        if (options.taken.empty()) return part / schedule.methods.get<Averaging>().period == learner;
        return options.taken[at(shard)][at(step)][at(part)] == learner;
    };
    // Stages of a pipeline that is not drained have weights of earlier updates of the step (PipeDream).
    const bool stale = std::ranges::any_of(schedule.classes, [](const RankClass& c) { return weight_versions(c) > 1; });
    for (int step = 0; step < options.steps; ++step) {
        const std::vector<std::vector<double>> apart = all.differences();
        for (std::size_t i = 0; i < all.models.size(); ++i) {
            const std::int64_t shard = static_cast<std::int64_t>(i) / learners;
            WrittenOutCurvature curvature{schedule, perturbation};  // of this model's own samples, as they come first
            bool pulled = !elastic, factored = false;
            std::vector<std::vector<float>> after{{all.weights(i).begin(), all.weights(i).end()}};
            for (std::int64_t part = 0; part < parts; ++part) {
                if (!takes(shard, step, part, static_cast<std::int64_t>(i) % learners)) continue;
                Program& model = *all.models[i];
                if (stale) single.put_stale_weights(model, after, static_cast<int>(part));
                assign(model.tensors().gradients(),
                       single.gradients_of_shard(model, step, shard, static_cast<int>(part)));
                if (stale) std::ranges::copy(after.back(), all.weights(i).begin());
                if (schedule.methods.get<Curvature>().period > 0) {
                    if (!factored) curvature.add(model);
                    factored = true;
                    curvature.precondition(model);
                }
                single.update(model);
                if (!pulled) all.pull(i, apart[i]);
                pulled = true;
                if (stale) after.emplace_back(all.weights(i).begin(), all.weights(i).end());
            }
            if (!pulled) all.pull(i, apart[i]);
        }
        if (elastic) all.move_average(apart);
        if (!elastic) all.replace();
    }
    return single.result(*all.models[at((shard_of(schedule.mesh, rank) + 1) * learners - 1)]);
}

}  // namespace rehearse::run
