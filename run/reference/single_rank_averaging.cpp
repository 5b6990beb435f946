// SPDX-License-Identifier: Apache-2.0
// Asynchronous elastic averaging (Zhang et al. 2015, algorithm 1), played again in the order in which servers took
// models: each pulls at the average as it is then.
#include <map>

#include "core/error.hpp"
#include "core/index.hpp"
#include "run/reference/single_rank.hpp"
#include "run/methods/server_shard.hpp"

namespace rehearse::run {

namespace {

/// A rank's own model, what it will give up when all of its trades of this step are over.
struct Own {
    std::unique_ptr<Program> model;
    std::vector<std::vector<double>> gives_up;  // by layer
    int step = 0;
    std::size_t traded = 0;  // buckets
    bool made = false;       // this step's updates
};

using Averages = std::vector<std::vector<double>>;  // by layer

}  // namespace

Trained Alone::train_by_elastic_servers(std::int64_t rank, int perturbation) const {
    const std::vector<Bucket>& buckets = schedule_.classes.front().part.buckets;
    std::map<std::int64_t, Own> all;
    for (const std::int64_t trader : trading_ranks(schedule_)) {
        all[trader].model = model(perturbation);
        all[trader].gives_up.resize(alone_.network.layers.size());
    }
    Averages average;
    for (std::size_t i = 0; i < alone_.network.layers.size(); ++i) {
        Program& any = *all.begin()->second.model;
        const std::vector<float> weights = floats_of(any.tensors().layer(static_cast<int>(i)).weights);
        average.emplace_back(weights.begin(), weights.end());
    }
    const auto make = [&](std::int64_t trader, Own& own) {
        own.made = true;
        for (int m = 0; m < schedule_.averaging.period; ++m) {
            const std::int64_t first =
                shard_of(schedule_.mesh, trader) * schedule_.batch_per_rank + m * micro_batch_size(schedule_);
            sum_gradients(*own.model, own.step, first, first + 1, 1);
            update(*own.model);
        }
    };
    const auto pull = [&](const Served& served) {
        Own& own = all.at(served.rank);
        if (!own.made) make(served.rank, own);
        for (const int layer : buckets[at(served.bucket)].layers) {
            const std::span<float> weights = own.model->tensors().layer(layer).weights;
            std::vector<double>& gives_up = own.gives_up[at(layer)];
            gives_up.resize(weights.size());
            for (std::size_t i = 0; i < weights.size(); ++i) {
                gives_up[i] = schedule_.averaging.elastic * (weights[i] - average[at(layer)][i]);
                average[at(layer)][i] += gives_up[i];
            }
        }
        if (++own.traded < buckets.size()) return;
        for (std::size_t layer = 0; layer < own.gives_up.size(); ++layer) {
            const std::span<float> weights = own.model->tensors().layer(static_cast<int>(layer)).weights;
            for (std::size_t i = 0; i < own.gives_up[layer].size(); ++i) {
                weights[i] = static_cast<float>(weights[i] - own.gives_up[layer][i]);
            }
        }
        own.traded = 0;
        own.made = false;
        ++own.step;
    };
    std::vector<std::size_t> next(options_.served.size());
    for (bool moved = true; moved;) {
        moved = false;
        for (std::size_t s = 0; s < next.size(); ++s) {
            while (next[s] < options_.served[s].size()) {
                const Served& served = options_.served[s][next[s]];
                if (all.at(served.rank).step != served.step) break;  // it has not been through with the step before
                pull(served);
                ++next[s];
                moved = true;
            }
        }
    }
    for (std::size_t s = 0; s < next.size(); ++s) {
        require(next[s] == options_.served[s].size(), "what servers have written down can have been");
    }
    return result(*all.at(rank).model);
}

}  // namespace rehearse::run
