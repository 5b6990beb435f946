// SPDX-License-Identifier: Apache-2.0
// What parameter servers mean, written out for one rank: their updates are played again in the order in which they have
// written them down.
#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "core/error.hpp"
#include "core/index.hpp"
#include "core/methods/averaging.hpp"
#include "core/methods/compression.hpp"
#include "core/methods/curvature.hpp"
#include "core/weight_versions.hpp"
#include "run/methods/server_shard.hpp"
#include "run/methods/servers.hpp"
#include "run/methods/workers.hpp"
#include "run/pieces.hpp"
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

/// A bucket of a rank, as its layers, or pieces of them, lie in those of the whole network.
struct KeptBucket {
    struct Piece {
        int layer = 0;
        std::vector<std::int64_t> places;  // of its elements; or `padding`
    };
    std::vector<Piece> pieces;
    std::int64_t elements = 0;
    const RankClass& rank_class;
    RankIndex rank;  // of the first worker
    int index = 0;   // of its rank's
    int stage = 0;
};

/// What the ranks of a worker push: of each stage and rank that has weights which none before it has.
std::vector<KeptBucket> kept_buckets(const Schedule& schedule) {
    std::vector<KeptBucket> all;
    for (int stage = 0; stage < stages(schedule); ++stage) {
        for (const RankIndex rank : pushing_ranks_of(schedule, stage)) {
            const RankClass& own = schedule.classes[at(class_of(schedule, rank))];
            const std::vector<std::int64_t> coordinates = rehearse::coordinates(schedule.mesh, rank);
            for (const PushPull* push : pushes_of(schedule, rank)) {
                const bool known = std::ranges::any_of(
                    all, [&](const KeptBucket& other) { return other.rank == rank && other.index == push->bucket; });
                if (known) continue;  // once an update of a step
                const Bucket& bucket = own.part.buckets[at(push->bucket)];
                KeptBucket kept{{}, bucket.elements, own, rank, push->bucket, stage};
                for (const int layer : bucket.layers) {
                    const Origin& origin = own.part.origins[at(layer)];
                    const Op& op = own.part.network.layers[at(layer)].op;
                    kept.pieces.push_back({origin.layer, indices_of_weights(schedule, origin, op, coordinates)});
                }
                all.push_back(std::move(kept));
            }
        }
    }
    return all;
}

std::vector<float> of_bucket(Program& program, const KeptBucket& bucket, kernels::View LayerTensors::*which) {
    std::vector<float> all;
    for (const KeptBucket::Piece& piece : bucket.pieces) {
        const std::span<const float> whole = program.tensors().layer(piece.layer).*which;
        for (const std::int64_t place : piece.places) all.push_back(place == padding ? 0 : whole[at(place)]);
    }
    return all;
}

void put(Program& program, const KeptBucket& bucket, std::span<const float> values,
         kernels::View LayerTensors::*which) {
    auto next = values.begin();
    for (const KeptBucket::Piece& piece : bucket.pieces) {
        const std::span<float> whole = program.tensors().layer(piece.layer).*which;
        for (const std::int64_t place : piece.places) {
            if (place != padding) whole[at(place)] = *next;
            ++next;
        }
    }
}
void put_weights(Program& program, const KeptBucket& bucket, std::span<const float> weights) {
    put(program, bucket, weights, &LayerTensors::weights);
}

/// The shards of a worker's samples.
std::set<std::int64_t> shards_of(const Mesh& mesh, RankIndex worker) {
    std::set<std::int64_t> found;
    for (RankIndex rank{0}; rank < ranks(mesh); ++rank) {
        if (worker_of(mesh, rank) == worker) found.insert(shard_of(mesh, rank));
    }
    return found;
}

/// The first rank of each worker.
std::set<RankIndex> first_ranks(const Mesh& mesh) {
    std::set<RankIndex> found;
    for (RankIndex rank{0}; rank < ranks(mesh); ++rank) found.insert(worker_of(mesh, rank));
    return found;
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

/// What servers keep of a rank of the workers.
struct KeptPlace {
    Schedule kept;
    std::unique_ptr<Program> program{};
};

/// The rank that has a copy of a stage, for a shard.
RankIndex rank_of(const Schedule& schedule, std::int64_t shard, int stage, std::int64_t copy) {
    RankIndex rank{0};
    for (;; ++rank) {
        const StagePlace place = stage_of(schedule, rank);
        if (shard_of(schedule.mesh, rank) == shard && place.stage == stage && place.copy == copy) return rank;
    }
}

/// A worker's own model, what it will give up when all of its pulls of this step are over.
struct OwnModel {
    std::unique_ptr<Program> model;
    std::vector<std::vector<double>> gives_up;  // by bucket
    int step = 0;
    std::size_t pulled = 0;  // buckets
    bool made = false;       // this step's updates
};

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

}  // namespace

// The updates one after the other, of each bucket in the order that its server has written down, each by the gradients
// of a worker at the weights that it got by its pulls of the step before.
Trained train_by_servers(const SingleRank& single, RankIndex rank, int perturbation) {
    const Schedule& schedule = single.schedule();
    if (schedule.methods.get<Averaging>().period > 0) return train_by_elastic_servers(single, rank, perturbation);
    const ReferenceOptions& options = single.options();
    const std::unique_ptr<Program> model = single.model(perturbation);
    const std::vector<KeptBucket> buckets = kept_buckets(schedule);
    std::map<RankIndex, Worker> workers;  // by first rank
    for (const RankIndex first_rank : first_ranks(schedule.mesh)) {
        Worker& worker = workers[first_rank];
        worker.gradients.resize(buckets.size());
        for (const KeptBucket& bucket : buckets)
            worker.weights.push_back(of_bucket(*model, bucket, &LayerTensors::weights));
    }
    std::map<RankIndex, KeptPlace> places;  // by the first worker's rank
    for (std::size_t b = 0; b < buckets.size(); ++b) {
        KeptPlace& place = places[buckets[b].rank];
        if (place.program == nullptr) {
            place.kept = kept_by_server(schedule, -1, buckets[b].rank);
            place.program = std::make_unique<Program>(place.kept, buckets[b].rank, options.selection,
                                                      options.weights_seed, options.hyperparameters);
        }
        assign(place.program->tensors().bucket(buckets[b].index).weights, workers.begin()->second.weights[b]);
    }
    Trained trained;
    const std::size_t in_group = at(shards(schedule.mesh)) / workers.size();
    const Combined in_groups = combined_by(single, perturbation);
    const std::int64_t turns = single.turns();
    const bool preconditions = schedule.methods.get<Curvature>().period > 0;
    WrittenOutCurvature curvature{schedule, perturbation};
    RoundedOnTheWire rounded{schedule, perturbation};
    const auto make = [&](RankIndex first_rank, Worker& worker) {
        for (std::size_t b = 0; b < buckets.size(); ++b) put_weights(*model, buckets[b], worker.weights[b]);
        const auto pushed = static_cast<double>(global_batch(schedule)) / static_cast<double>(workers.size());
        curvature.begin();
        // By bucket and rank that sums with others of its group, or of its stage's copies: of that rank's samples.
        std::vector<std::map<RankIndex, std::vector<float>>> each(buckets.size());
        std::vector<std::int64_t> parts;
        for (const std::int64_t shard : shards_of(schedule.mesh, first_rank)) {
            for (std::int64_t turn = 0; turn < turns; ++turn) parts.push_back(shard * turns + turn);
        }
        for (const std::int64_t part : parts) {
            const std::int64_t shard = part / turns;
            std::vector<float> made = single.gradients_of_part(*model, worker.step, part);
            if (preconditions) curvature.add(*model);
            if (preconditions && in_group > 1) rounded.round(made);
            const double samples = static_cast<double>(samples_of(schedule, shard)) / pushed;
            assign(model->tensors().gradients(), made);
            for (std::size_t b = 0; b < buckets.size(); ++b) {
                const int copies = buckets[b].rank_class.copies;
                const double share = (in_groups.of == Of::shard ? copies : samples) / static_cast<double>(turns);
                const std::vector<float> own = of_bucket(*model, buckets[b], &LayerTensors::gradients);
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
            put(*model, buckets[b], sum, &LayerTensors::gradients);
        }
        if (preconditions) curvature.precondition(*model);
        for (std::size_t b = 0; b < buckets.size(); ++b) {
            const std::vector<float> sum = of_bucket(*model, buckets[b], &LayerTensors::gradients);
            worker.gradients[b] = sum;
            if (pushes_factors(buckets[b].rank_class, buckets[b].index)) continue;  // as they are
            std::vector<float> sent(at(most_pushed(schedule, buckets[b].elements)));
            worker.left.resize(buckets.size());
            pack_gradients(schedule, sum, worker.left[b], sent);
            unpack_gradients(schedule, sent, worker.gradients[b]);
        }
        worker.made = true;
        if (worker_of(schedule.mesh, rank) == first_rank && single.last(worker.step))
            trained.gradients = single.result(*model).gradients;
    };
    const auto update = [&](Worker& worker, std::size_t b) {
        Program& server = *places.at(buckets[b].rank).program;
        assign(server.tensors().bucket(buckets[b].index).applied, worker.gradients[b]);
        for (ReadyStep& ready : server.steps()) {
            if (std::get<Update>(ready.step->action).bucket == buckets[b].index) server.compute(ready, 0, 0);
        }
        server.end_step();
        worker.weights[b] = floats_of(server.tensors().bucket(buckets[b].index).weights);
    };
    const auto update_by = [&](const Served& served) {
        const RankIndex by = worker_of(schedule.mesh, served.rank);
        Worker& worker = workers.at(by);
        if (!worker.made) make(by, worker);
        for (std::size_t b = 0; b < buckets.size(); ++b) {
            if (buckets[b].stage != served.stage || buckets[b].index != served.bucket) continue;
            update(worker, b);
            ++worker.pulled;
        }
        if (worker.pulled < buckets.size()) return;
        worker.pulled = 0;
        worker.made = false;
        ++worker.step;
    };
    play_again(
        options.served, [&](RankIndex of) { return workers.at(worker_of(schedule.mesh, of)).step; }, update_by);
    const Worker& own = workers.at(worker_of(schedule.mesh, rank));
    for (std::size_t b = 0; b < buckets.size(); ++b) put_weights(*model, buckets[b], own.weights[b]);
    trained.weights = single.result(*model).weights;
    return trained;
}

}  // namespace rehearse::run
