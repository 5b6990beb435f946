// SPDX-License-Identifier: Apache-2.0
// References of trainings whose ranks do not simply sum their gradients: models of their own, gradients in fewer bits,
// parameter servers.
#include <algorithm>
#include <cmath>

#include "core/error.hpp"
#include "core/index.hpp"
#include "run/methods/compression.hpp"
#include "run/reference/single_rank.hpp"
#include "run/methods/server_shard.hpp"

namespace rehearse::run {

namespace {

/// The models that local SGD and elastic averaging train, and their average.
struct Models {
    const Averaging& averaging;
    std::vector<std::unique_ptr<Program>> models;
    std::vector<double> average, last;

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
            for (std::size_t i = 0; i < models.size(); ++i) sum += weights(i)[k];
            for (std::size_t i = 0; i < models.size(); ++i) {
                weights(i)[k] = static_cast<float>(sum / static_cast<double>(models.size()));
            }
        }
    }
};

/// The weights that a trading rank has, and the gradients that it makes with them next.
struct Trader {
    std::vector<std::vector<float>> weights, gradients;  // by bucket
    int step = 0;                                        // of its next gradients
    std::size_t traded = 0;                              // buckets, of that step
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

void put_weights(Program& program, const Bucket& bucket, std::span<const float> weights) {
    for (const int layer : bucket.layers) {
        const kernels::View own = program.tensors().layer(layer).weights;
        assign(own, weights.first(own.size()));
        weights = weights.subspan(own.size());
    }
}

}  // namespace

// The updates one after the other, of each bucket in the order that its server has written down, each by the gradients
// of a trading rank at the weights that it got by its trades of the step before.
Trained Alone::train_by_servers(std::int64_t rank, int perturbation) const {
    const std::vector<Bucket>& buckets = schedule_.classes.front().part.buckets;
    const std::unique_ptr<Program> model = this->model(perturbation);
    const Schedule kept = kept_by_server(schedule_, -1);
    Program server{kept, 0, options_.wish, options_.weights_seed, options_.hyperparameters};
    std::map<std::int64_t, Trader> traders;
    for (const std::int64_t trader : trading_ranks(schedule_)) {
        for (const Bucket& bucket : buckets) {
            traders[trader].weights.push_back(of_bucket(*model, bucket, &LayerTensors::weights));
            traders[trader].gradients.emplace_back();
        }
    }
    for (std::size_t b = 0; b < buckets.size(); ++b)
        put_weights(server, buckets[b], traders.begin()->second.weights[b]);
    Trained trained;
    const std::int64_t in_group = shards(schedule_.mesh) / static_cast<std::int64_t>(traders.size());
    const auto make = [&](std::int64_t first_rank, Trader& trader) {
        for (std::size_t b = 0; b < buckets.size(); ++b) put_weights(*model, buckets[b], trader.weights[b]);
        const std::int64_t first = shard_of(schedule_.mesh, first_rank) * schedule_.batch_per_rank;
        sum_gradients(*model, trader.step, first, first + in_group * schedule_.batch_per_rank,
                      micro_batch_size(schedule_));
        for (std::size_t b = 0; b < buckets.size(); ++b) {
            trader.gradients[b] = of_bucket(*model, buckets[b], &LayerTensors::gradients);
        }
        trader.made = true;
        const bool own = shard_of(schedule_.mesh, rank) / in_group == shard_of(schedule_.mesh, first_rank) / in_group;
        if (own && last(trader.step)) trained.gradients = result(*model).gradients;
    };
    const auto update_by = [&](const Served& served) {
        Trader& trader = traders.at(served.rank);
        if (!trader.made) make(served.rank, trader);
        const auto b = at(served.bucket);
        assign(server.tensors().bucket(served.bucket).applied, trader.gradients[b]);
        for (ReadyStep& ready : server.steps()) {
            if (std::get<Update>(ready.step->action).bucket == served.bucket) server.compute(ready, 0, 0);
        }
        server.end_step();
        trader.weights[b] = floats_of(server.tensors().bucket(served.bucket).weights);
        if (++trader.traded < buckets.size()) return;
        trader.traded = 0;
        trader.made = false;
        ++trader.step;
    };
    std::vector<std::size_t> next(options_.served.size());
    for (bool moved = true; moved;) {
        moved = false;
        for (std::size_t s = 0; s < next.size(); ++s) {
            while (next[s] < options_.served[s].size()) {
                const Served& served = options_.served[s][next[s]];
                if (traders.at(served.rank).step != served.step) break;  // it has not got what it needs for that yet
                update_by(served);
                ++next[s];
                moved = true;
            }
        }
    }
    for (std::size_t s = 0; s < next.size(); ++s) {
        require(next[s] == options_.served[s].size(), "what servers have written down can have been");
    }
    for (auto& [first_rank, trader] : traders) {
        if (shard_of(schedule_.mesh, rank) / in_group != shard_of(schedule_.mesh, first_rank) / in_group) continue;
        for (std::size_t b = 0; b < buckets.size(); ++b) put_weights(*model, buckets[b], trader.weights[b]);
        trained.weights = result(*model).weights;
    }
    return trained;
}

Trained Alone::train_models(std::int64_t rank, int perturbation) const {
    Models all{schedule_.averaging};
    const std::int64_t learners = schedule_.averaging.learners;
    for (std::int64_t i = 0; i < learners * shards(schedule_.mesh); ++i) all.models.push_back(model(perturbation));
    all.begin();
    const bool elastic = schedule_.averaging.elastic > 0;
    const std::int64_t size = micro_batch_size(schedule_), parts = schedule_.micro_batches;
    const auto takes = [&](std::int64_t shard, int step, std::int64_t part, std::int64_t learner) {
        if (options_.taken.empty()) return part / schedule_.averaging.period == learner;
        return options_.taken[at(shard)][at(step)][at(part)] == learner;
    };
    for (int step = 0; step < options_.steps; ++step) {
        const std::vector<std::vector<double>> apart = all.differences();
        for (std::size_t i = 0; i < all.models.size(); ++i) {
            const std::int64_t shard = static_cast<std::int64_t>(i) / learners;
            bool pulled = !elastic;
            for (std::int64_t part = 0; part < parts; ++part) {
                if (!takes(shard, step, part, static_cast<std::int64_t>(i) % learners)) continue;
                const std::int64_t first = shard * schedule_.batch_per_rank + part * size;
                sum_gradients(*all.models[i], step, first, first + 1, 1);
                update(*all.models[i]);
                if (!pulled) all.pull(i, apart[i]);
                pulled = true;
            }
            if (!pulled) all.pull(i, apart[i]);
        }
        if (elastic) all.move_average(apart);
        if (!elastic) all.replace();
    }
    return result(*all.models[at((shard_of(schedule_.mesh, rank) + 1) * learners - 1)]);
}

// Each rank's gradients and what it had left out before are sent in few bits; all take the sum of what has come.
Trained Alone::train_compressed(int perturbation) const {
    const std::unique_ptr<Program> model = this->model(perturbation);
    const std::vector<Bucket>& buckets = schedule_.classes.front().part.buckets;
    const std::int64_t ranks = shards(schedule_.mesh);
    std::vector<std::vector<std::vector<float>>> left(at(ranks));  // by rank and bucket
    Trained trained;
    for (int step = 0; step < options_.steps; ++step) {
        std::vector<std::vector<float>> sums;
        for (const Bucket& bucket : buckets) sums.emplace_back(at(bucket.elements));
        for (std::int64_t rank = 0; rank < ranks; ++rank) {
            const std::int64_t first = rank * schedule_.batch_per_rank;
            sum_gradients(*model, step, first, first + schedule_.batch_per_rank, micro_batch_size(schedule_));
            for (std::size_t b = 0; b < buckets.size(); ++b) {
                std::vector<float> gradients;
                for (const int layer : buckets[b].layers) {
                    for (const float g : floats_of(model->tensors().layer(layer).gradients)) {
                        gradients.push_back(g / static_cast<float>(ranks));
                    }
                }
                auto& own = left[at(rank)];
                if (own.size() <= b) own.emplace_back(gradients.size());
                std::ranges::transform(own[b], gradients, own[b].begin(), std::plus<>{});
                std::vector<float> words(at(compressed_words(schedule_.compression, buckets[b].elements)));
                compress(schedule_.compression, own[b], words);
                add_compressed(schedule_.compression, words, sums[b]);
            }
        }
        for (std::size_t b = 0; b < buckets.size(); ++b) {
            std::size_t from = 0;
            for (const int layer : buckets[b].layers) {
                const kernels::View gradients = model->tensors().layer(layer).gradients;
                assign(gradients, std::span{sums[b]}.subspan(from, gradients.size()));
                from += gradients.size();
            }
        }
        if (last(step)) trained.gradients = result(*model).gradients;
        update(*model);
    }
    trained.weights = result(*model).weights;
    return trained;
}

}  // namespace rehearse::run
