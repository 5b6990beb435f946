// SPDX-License-Identifier: Apache-2.0
// What servers of an average mean, written out for one rank: pulls are played again in the order of their logs.
#include <algorithm>
#include <map>
#include <memory>

#include "core/index.hpp"
#include "core/methods/averaging.hpp"
#include "core/methods/curvature.hpp"
#include "core/weight_versions.hpp"
#include "run/methods/workers.hpp"
#include "run/reference/kept_buckets.hpp"
#include "run/reference/single_rank.hpp"
#include "run/reference/written_out_curvature.hpp"

namespace rehearse::run {

namespace {

/// A worker's own model, what it will give up when all of its pulls of this step are over.
struct OwnModel {
    std::unique_ptr<Program> model;
    std::vector<std::vector<double>> gives_up;  // by bucket
    int step = 0;
    std::size_t pulled = 0;  // buckets
    bool made = false;       // this step's updates
};

}  // namespace

// Asynchronous elastic averaging (Zhang et al. 2015, algorithm 1): each model pulls at the average as it is then.
Trained train_by_elastic_servers(const SingleRank& single, RankIndex rank, int perturbation) {
    const Schedule& schedule = single.schedule();
    const Averaging& by = schedule.methods.get<Averaging>();
    const std::vector<KeptBucket> buckets = kept_buckets(schedule);
    std::map<RankIndex, OwnModel> all;
    for (const RankIndex worker : first_ranks(schedule.mesh)) {
        all[worker].model = single.model(perturbation);
        all[worker].gives_up.resize(buckets.size());
    }
    std::vector<std::vector<double>> average;  // by bucket
    for (const KeptBucket& bucket : buckets) {
        const std::vector<float> weights = of_bucket(*all.begin()->second.model, bucket, &LayerTensors::weights);
        average.emplace_back(weights.begin(), weights.end());
    }
    std::vector<std::vector<double>> last = average;  // before the last pull
    // Stages of a pipeline that is not drained have weights of earlier updates of the step (PipeDream).
    const bool stale = std::ranges::any_of(schedule.classes, [](const RankClass& c) { return weight_versions(c) > 1; });
    const auto make = [&](RankIndex worker, OwnModel& own) {
        own.made = true;
        const std::span<float> weights = own.model->tensors().weights();
        std::vector<std::vector<float>> after{{weights.begin(), weights.end()}};  // so many updates of this step
        WrittenOutCurvature curvature{schedule, perturbation};                    // of this model's own samples
        for (int m = 0; m < by.period; ++m) {
            if (stale) single.put_stale_weights(*own.model, after, m);
            assign(own.model->tensors().gradients(),
                   single.gradients_of_shard(*own.model, own.step, shard_of(schedule.mesh, worker), m));
            std::ranges::copy(after.back(), weights.begin());
            if (schedule.methods.get<Curvature>().period > 0) {
                if (m == 0) curvature.add(*own.model);
                curvature.precondition(*own.model);
            }
            single.update(*own.model);
            after.emplace_back(weights.begin(), weights.end());
        }
    };
    const auto pull = [&](const OwnModel& own, std::size_t b, std::vector<double>& gives_up) {
        const std::vector<float> weights = of_bucket(*own.model, buckets[b], &LayerTensors::weights);
        gives_up.resize(weights.size());
        for (std::size_t i = 0; i < weights.size(); ++i) {
            gives_up[i] = by.elastic * (weights[i] - average[b][i]);
            const double before = average[b][i];
            average[b][i] += gives_up[i] + by.momentum * (before - last[b][i]);
            last[b][i] = before;
        }
    };
    const auto give_up = [&](OwnModel& own) {
        std::vector<std::vector<float>> left;  // of all before any is put: some weights are in several
        for (std::size_t b = 0; b < buckets.size(); ++b) {
            std::vector<float>& weights = left.emplace_back(of_bucket(*own.model, buckets[b], &LayerTensors::weights));
            for (std::size_t i = 0; i < weights.size(); ++i) {
                weights[i] = static_cast<float>(weights[i] - own.gives_up[b][i]);
            }
        }
        for (std::size_t b = 0; b < buckets.size(); ++b) put_weights(*own.model, buckets[b], left[b]);
    };
    const auto take = [&](const Served& served) {
        const RankIndex worker = worker_of(schedule.mesh, served.rank);
        OwnModel& own = all.at(worker);
        if (!own.made) make(worker, own);
        for (std::size_t b = 0; b < buckets.size(); ++b) {
            if (buckets[b].stage != served.stage || buckets[b].index != served.bucket) continue;
            pull(own, b, own.gives_up[b]);
            ++own.pulled;
        }
        if (own.pulled < buckets.size()) return;
        give_up(own);
        own.pulled = 0;
        own.made = false;
        ++own.step;
    };
    play_again(
        single.options().served, [&](RankIndex of) { return all.at(worker_of(schedule.mesh, of)).step; }, take);
    return single.result(*all.at(worker_of(schedule.mesh, rank)).model);
}

}  // namespace rehearse::run
