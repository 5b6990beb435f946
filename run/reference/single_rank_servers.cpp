// SPDX-License-Identifier: Apache-2.0
// What parameter servers mean, written out for one rank: their updates are played again in the order in which they have
// written them down.
#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <set>

#include "core/index.hpp"
#include "core/methods/averaging.hpp"
#include "core/methods/compression.hpp"
#include "core/methods/curvature.hpp"
#include "run/methods/method.hpp"
#include "run/methods/servers.hpp"
#include "run/methods/workers.hpp"
#include "run/reference/by_buckets.hpp"
#include "run/reference/kept_buckets.hpp"
#include "run/reference/written_out_curvature.hpp"

namespace rehearse::run {

Reference train_by_elastic_servers;  // single_rank_elastic_servers.cpp

namespace {

/// The weights that a worker has, and the gradients that it makes with them next.
struct Worker {
    std::vector<std::vector<float>> weights, gradients, left;  // by bucket; left: not pushed yet
    int step = 0;                                              // of its next gradients
    std::size_t pulled = 0;                                    // buckets, of that step
    bool made = false;
};

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
        for (const std::int64_t shard : shards_of_worker(schedule.mesh, first_rank)) {
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
