// SPDX-License-Identifier: Apache-2.0
// What K-FAC means, written out for one rank: a training by directions.
#include <algorithm>
#include <memory>

#include "core/index.hpp"
#include "core/methods/averaging.hpp"
#include "core/methods/servers.hpp"
#include "core/weight_versions.hpp"
#include "run/methods/method.hpp"
#include "run/reference/by_buckets.hpp"
#include "run/reference/written_out_curvature.hpp"

namespace rehearse::run {

Reference train_by_servers;  // single_rank_servers.cpp
Reference train_models;      // single_rank_averaging.cpp

namespace {

/// A training from the first weights, or from changed ones.
struct Lane {
    Lane(const SingleRank& single, int number)
        : perturbation(number),
          program(single.model(number)),
          by(combined_by(single, number)),
          curvature(single.schedule(), number),
          rounded(single.schedule(), number) {}

    int perturbation;
    std::unique_ptr<Program> program;
    Combined by;
    WrittenOutCurvature curvature;
    RoundedOnTheWire rounded;
    std::vector<std::vector<float>> after{};  // weights after so many updates of a step
};

/// The gradients of each shard's micro-batch m, at the weights that stages have for it.
std::vector<std::vector<float>> made_by(const SingleRank& single, Lane& lane, int step, int m) {
    const Schedule& schedule = single.schedule();
    const ReferenceOptions& options = single.options();
    std::vector<std::vector<float>> by_shard;
    const bool stale = std::ranges::any_of(schedule.classes, [](const RankClass& c) { return weight_versions(c) > 1; });
    if (stale) single.put_stale_weights(*lane.program, lane.after, m);
    for (std::int64_t shard = 0; shard < shards(schedule.mesh); ++shard) {
        const std::int64_t first = shard * schedule.batch_per_rank + m * micro_batch_size(schedule);
        options.load(step, first, *lane.program);
        lane.program->compute_gradients(options.dropout_seed(step), first);
        by_shard.push_back(floats_of(lane.program->tensors().gradients()));
        lane.rounded.round(by_shard.back());
        if (m == 0) lane.curvature.add(*lane.program);
    }
    if (stale) assign(lane.program->tensors().weights(), lane.after.back());
    return by_shard;
}

}  // namespace

// What ranks send in bits hangs on weights that inverses have rounded: trainings from changed weights go along, step by
// step, and say how far.
Trained train_by_curvature(const SingleRank& single, RankIndex rank, int perturbation) {
    const Schedule& schedule = single.schedule();
    if (schedule.methods.get<Servers>().count > 0) return train_by_servers(single, rank, perturbation);
    if (schedule.methods.get<Averaging>().period > 0) return train_models(single, rank, perturbation);
    const bool by_bits = std::ranges::any_of(methods_of(schedule), &MethodRow::by_bits);
    std::vector<std::unique_ptr<Lane>> lanes;
    lanes.push_back(std::make_unique<Lane>(single, perturbation));
    for (int i = 1; i <= perturbations && perturbation == 0 && by_bits; ++i)
        lanes.push_back(std::make_unique<Lane>(single, i));
    Trained trained;
    for (int step = single.options().first_step(); step < single.options().steps; ++step) {
        for (const auto& lane : lanes) {
            lane->curvature.begin();
            lane->after = {floats_of(lane->program->tensors().weights())};
        }
        for (int m = 0; m < schedule.micro_batches; ++m) {
            BatchGradients made{made_by(single, *lanes.front(), step, m)};
            for (std::size_t i = 1; i < lanes.size(); ++i) made.changed.push_back(made_by(single, *lanes[i], step, m));
            for (std::size_t i = 0; i < lanes.size(); ++i) {
                Lane& lane = *lanes[i];
                assign(lane.program->tensors().gradients(),
                       brought_together(single, *lane.program, i == 0 ? made : BatchGradients{made.changed[i - 1]},
                                        lane.by.combine, lane.by.of));
                lane.curvature.precondition(*lane.program);
            }
            if (single.last(step) && m + 1 == schedule.micro_batches)
                trained.gradients = single.result(*lanes.front()->program).gradients;
            for (const auto& lane : lanes) {
                single.update(*lane->program);
                lane->after.push_back(floats_of(lane->program->tensors().weights()));
            }
        }
    }
    trained.weights = single.result(*lanes.front()->program).weights;
    return trained;
}

}  // namespace rehearse::run
