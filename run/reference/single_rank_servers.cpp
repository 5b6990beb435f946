// SPDX-License-Identifier: Apache-2.0
// What parameter servers mean, written out for one rank: their updates are played again in the order in which they have
// written them down.
#include <algorithm>
#include <map>
#include <optional>

#include "core/error.hpp"
#include "core/index.hpp"
#include "core/methods/averaging.hpp"
#include "core/methods/compression.hpp"
#include "core/methods/curvature.hpp"
#include "run/methods/server_shard.hpp"
#include "run/methods/servers.hpp"
#include "run/reference/by_buckets.hpp"
#include "run/reference/written_out_curvature.hpp"

namespace rehearse::run {

namespace {

/// The weights that a worker has, and the gradients that it makes with them next.
struct Worker {
    std::vector<std::vector<float>> weights, gradients, left;  // by bucket; left: not pushed yet
    int step = 0;                                              // of its next gradients
    std::size_t pulled = 0;                                    // buckets, of that step
    bool made = false;
};

std::vector<float> of_bucket(Program& program, const Bucket& bucket, kernels::View LayerTensors::*which) {
    std::vector<float> all;
    for (const int layer : bucket.layers) {
        const std::vector<float> own = floats_of(program.tensors().layer(layer).*which);
        all.insert(all.end(), own.begin(), own.end());
    }
    return all;
}

void put(Program& program, const Bucket& bucket, std::span<const float> values, kernels::View LayerTensors::*which) {
    for (const int layer : bucket.layers) {
        const kernels::View own = program.tensors().layer(layer).*which;
        assign(own, values.first(own.size()));
        values = values.subspan(own.size());
    }
}
void put_weights(Program& program, const Bucket& bucket, std::span<const float> weights) {
    put(program, bucket, weights, &LayerTensors::weights);
}

bool pushes_factors(const RankClass& rank_class, int bucket) {
    return std::ranges::any_of(rank_class.steps, [&](const Step& step) {
        const auto* push_pull = std::get_if<PushPull>(&step.action);
        return push_pull != nullptr && push_pull->bucket == bucket && sends_factors(*push_pull);
    });
}

/// Room for what is pushed of so many gradients.
std::int64_t most_pushed(const Schedule& schedule, std::int64_t elements) {
    const auto& by = schedule.methods.get<Compression>();
    return by != Compression{} ? compressed_words(by, elements) : elements;
}

/// What servers keep of a stage of the workers.
struct KeptStage {
    Schedule kept;
    std::unique_ptr<Program> program;
    std::size_t first = 0;  // of its buckets, among those of all stages
};
/// A bucket of some stage, by the layers of the whole network.
struct KeptBucket {
    Bucket whole;
    const RankClass& rank_class;
    int index = 0;  // of its stage
    int stage = 0;
};

KeptBucket of_whole_network(const RankClass& rank_class, int index, int stage) {
    KeptBucket kept{rank_class.part.buckets[at(index)], rank_class, index, stage};
    for (int& layer : kept.whole.layers) layer = rank_class.part.origins[at(layer)].layer;
    return kept;
}

/// The first rank of a worker's pipeline.
RankIndex worker_of(const Schedule& schedule, RankIndex rank) {
    const int pipe = axis_index(schedule.mesh, "pipe");
    if (pipe < 0) return rank;
    std::vector<std::int64_t> coordinates = rehearse::coordinates(schedule.mesh, rank);
    coordinates[at(pipe)] = 0;
    return rank_at(schedule.mesh, coordinates);
}

/// The rank that has a copy of a stage, for a shard.
RankIndex rank_of(const Schedule& schedule, std::int64_t shard, int stage, std::int64_t copy) {
    RankIndex rank{0};
    for (;; ++rank) {
        const StagePlace place = stage_of(schedule, rank);
        if (shard_of(schedule.mesh, rank) == shard && place.stage == stage && place.copy == copy) return rank;
    }
}

/// A rank's own model, what it will give up when all of its pulls of this step are over.
struct OwnModel {
    std::unique_ptr<Program> model;
    std::vector<std::vector<double>> gives_up;  // by layer
    int step = 0;
    std::size_t pulled = 0;  // buckets
    bool made = false;       // this step's updates
};

using Averages = std::vector<std::vector<double>>;  // by layer

/// Calls `take` for what servers have written down, each server's in its order, once `step_of` says that the rank has
/// come to that step: it has what it needs for it.
template <typename StepOf, typename Take>
void play_again(const ServerLogs& logs, const StepOf& step_of, const Take& take) {
    std::vector<std::size_t> next(logs.size());
    for (bool moved = true; moved;) {
        moved = false;
        for (std::size_t s = 0; s < next.size(); ++s) {
            while (next[s] < logs[s].size() && step_of(logs[s][next[s]].rank) == logs[s][next[s]].step) {
                take(logs[s][next[s]++]);
                moved = true;
            }
        }
    }
    for (std::size_t s = 0; s < next.size(); ++s) {
        require(next[s] == logs[s].size(), "what servers have written down can have been");
    }
}

// Asynchronous elastic averaging (Zhang et al. 2015, algorithm 1): each model pulls at the average as it is then.
Trained train_by_elastic_servers(const SingleRank& single, RankIndex rank, int perturbation) {
    const Schedule& schedule = single.schedule();
    const ReferenceOptions& options = single.options();
    const std::vector<Bucket>& buckets = schedule.classes.front().part.buckets;
    std::map<RankIndex, OwnModel> all;
    for (const RankIndex worker : pushing_ranks(schedule)) {
        all[worker].model = single.model(perturbation);
        all[worker].gives_up.resize(single.layers().size());
    }
    Averages average;
    for (std::size_t i = 0; i < single.layers().size(); ++i) {
        Program& any = *all.begin()->second.model;
        const std::vector<float> weights = floats_of(any.tensors().layer(static_cast<int>(i)).weights);
        average.emplace_back(weights.begin(), weights.end());
    }
    Averages last = average;  // before the last pull
    const auto make = [&](RankIndex worker, OwnModel& own) {
        own.made = true;
        for (int m = 0; m < schedule.methods.get<Averaging>().period; ++m) {
            assign(own.model->tensors().gradients(),
                   single.gradients_of_shard(*own.model, own.step, shard_of(schedule.mesh, worker), m));
            single.update(*own.model);
        }
    };
    const auto pull = [&](const Served& served) {
        OwnModel& own = all.at(served.rank);
        if (!own.made) make(served.rank, own);
        for (const int layer : buckets[at(served.bucket)].layers) {
            const std::span<float> weights = own.model->tensors().layer(layer).weights;
            std::vector<double>& gives_up = own.gives_up[at(layer)];
            gives_up.resize(weights.size());
            for (std::size_t i = 0; i < weights.size(); ++i) {
                gives_up[i] = schedule.methods.get<Averaging>().elastic * (weights[i] - average[at(layer)][i]);
                const double before = average[at(layer)][i];
                average[at(layer)][i] +=
                    gives_up[i] + schedule.methods.get<Averaging>().momentum * (before - last[at(layer)][i]);
                last[at(layer)][i] = before;
            }
        }
        if (++own.pulled < buckets.size()) return;
        for (std::size_t layer = 0; layer < own.gives_up.size(); ++layer) {
            const std::span<float> weights = own.model->tensors().layer(static_cast<int>(layer)).weights;
            for (std::size_t i = 0; i < own.gives_up[layer].size(); ++i) {
                weights[i] = static_cast<float>(weights[i] - own.gives_up[layer][i]);
            }
        }
        own.pulled = 0;
        own.made = false;
        ++own.step;
    };
    play_again(
        options.served, [&](RankIndex of) { return all.at(of).step; }, pull);
    return single.result(*all.at(rank).model);
}

}  // namespace

// The updates one after the other, of each bucket in the order that its server has written down, each by the gradients
// of a worker at the weights that it got by its pulls of the step before.
Trained train_by_servers(const SingleRank& single, RankIndex rank, int perturbation) {
    const Schedule& schedule = single.schedule();
    if (schedule.methods.get<Averaging>().period > 0) return train_by_elastic_servers(single, rank, perturbation);
    const ReferenceOptions& options = single.options();
    const std::unique_ptr<Program> model = single.model(perturbation);
    std::vector<KeptStage> stages;
    std::vector<KeptBucket> buckets;
    for (int stage = 0; stage < rehearse::stages(schedule); ++stage) {
        stages.push_back({kept_by_server(schedule, -1, stage), nullptr, buckets.size()});
        const RankClass& rank_class = class_of_stage(schedule, stage);
        for (std::size_t b = 0; b < rank_class.part.buckets.size(); ++b)
            buckets.push_back(of_whole_network(rank_class, static_cast<int>(b), stage));
    }
    std::map<RankIndex, Worker> workers;
    for (const RankIndex rank_of_worker : pushing_ranks(schedule)) {
        const auto [worker, fresh] = workers.try_emplace(worker_of(schedule, rank_of_worker));
        for (std::size_t b = 0; b < buckets.size() && fresh; ++b) {
            worker->second.weights.push_back(of_bucket(*model, buckets[b].whole, &LayerTensors::weights));
            worker->second.gradients.emplace_back();
        }
    }
    for (KeptStage& stage : stages) {
        stage.program = std::make_unique<Program>(stage.kept, RankIndex{0}, options.selection, options.weights_seed,
                                                  options.hyperparameters);
        for (std::size_t b = 0; b < stage.kept.classes.front().part.buckets.size(); ++b) {
            assign(stage.program->tensors().bucket(static_cast<int>(b)).weights,
                   workers.begin()->second.weights[stage.first + b]);
        }
    }
    Trained trained;
    const std::int64_t in_group = shards(schedule.mesh) / static_cast<std::int64_t>(workers.size());
    const Combined in_groups = combined_by(single, perturbation);
    const std::int64_t turns = single.turns();
    const bool preconditions = schedule.methods.get<Curvature>().period > 0;
    WrittenOutCurvature curvature{schedule, perturbation};
    RoundedOnTheWire rounded{schedule, perturbation};
    const auto make = [&](RankIndex first_rank, Worker& worker) {
        for (std::size_t b = 0; b < buckets.size(); ++b) put_weights(*model, buckets[b].whole, worker.weights[b]);
        const std::int64_t first = shard_of(schedule.mesh, first_rank);
        const auto pushed = static_cast<double>(global_batch(schedule)) / static_cast<double>(workers.size());
        curvature.begin();
        // By bucket and rank that sums with others of its group, or of its stage's copies: of that rank's samples.
        std::vector<std::map<RankIndex, std::vector<float>>> each(buckets.size());
        for (std::int64_t part = first * turns; part < (first + in_group) * turns; ++part) {
            const std::int64_t shard = part / turns;
            std::vector<float> made = single.gradients_of_part(*model, worker.step, part);
            if (preconditions) curvature.add(*model);
            if (preconditions && in_group > 1) rounded.round(made);
            const double samples = static_cast<double>(samples_of(schedule, shard)) / pushed;
            assign(model->tensors().gradients(), made);
            for (std::size_t b = 0; b < buckets.size(); ++b) {
                const int copies = buckets[b].rank_class.copies;
                const double share = (in_groups.of == Of::shard ? copies : samples) / static_cast<double>(turns);
                const std::vector<float> own = of_bucket(*model, buckets[b].whole, &LayerTensors::gradients);
                std::vector<float>& sum = each[b][rank_of(schedule, shard, buckets[b].stage, part % turns % copies)];
                sum.resize(own.size());
                for (std::size_t i = 0; i < own.size(); ++i) sum[i] += static_cast<float>(share * own[i]);
            }
        }
        for (std::size_t b = 0; b < buckets.size(); ++b) {
            std::vector<RankIndex> group;
            Own own;
            for (auto& [member, gradients] : each[b]) {
                group.push_back(member);
                own.gradients.push_back(std::move(gradients));
                own.reach.emplace_back(own.gradients.back().size());  // bits that rounding turns are not followed
            }
            const std::vector<float> sum =
                group.size() > 1 ? in_groups.combine(group, static_cast<int>(b), own) : own.gradients.front();
            put(*model, buckets[b].whole, sum, &LayerTensors::gradients);
        }
        if (preconditions) curvature.precondition(*model);
        for (std::size_t b = 0; b < buckets.size(); ++b) {
            const std::vector<float> sum = of_bucket(*model, buckets[b].whole, &LayerTensors::gradients);
            worker.gradients[b] = sum;
            if (pushes_factors(buckets[b].rank_class, buckets[b].index)) continue;  // as they are
            std::vector<float> sent(at(most_pushed(schedule, buckets[b].whole.elements)));
            worker.left.resize(buckets.size());
            pack_gradients(schedule, sum, worker.left[b], sent);
            unpack_gradients(schedule, sent, worker.gradients[b]);
        }
        worker.made = true;
        const bool own = shard_of(schedule.mesh, rank) / in_group == shard_of(schedule.mesh, first_rank) / in_group;
        if (own && single.last(worker.step)) trained.gradients = single.result(*model).gradients;
    };
    const auto update_by = [&](const Served& served) {
        const RankIndex by = worker_of(schedule, served.rank);
        Worker& worker = workers.at(by);
        if (!worker.made) make(by, worker);
        Program& server = *stages[at(served.stage)].program;
        const std::size_t b = stages[at(served.stage)].first + at(served.bucket);
        assign(server.tensors().bucket(served.bucket).applied, worker.gradients[b]);
        for (ReadyStep& ready : server.steps()) {
            if (std::get<Update>(ready.step->action).bucket == served.bucket) server.compute(ready, 0, 0);
        }
        server.end_step();
        worker.weights[b] = floats_of(server.tensors().bucket(served.bucket).weights);
        if (++worker.pulled < buckets.size()) return;
        worker.pulled = 0;
        worker.made = false;
        ++worker.step;
    };
    play_again(
        options.served, [&](RankIndex of) { return workers.at(worker_of(schedule, of)).step; }, update_by);
    for (auto& [first_rank, worker] : workers) {
        if (shard_of(schedule.mesh, rank) / in_group != shard_of(schedule.mesh, first_rank) / in_group) continue;
        for (std::size_t b = 0; b < buckets.size(); ++b) put_weights(*model, buckets[b].whole, worker.weights[b]);
        trained.weights = single.result(*model).weights;
    }
    return trained;
}

}  // namespace rehearse::run
