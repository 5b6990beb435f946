// SPDX-License-Identifier: Apache-2.0
// What gradients in fewer bits mean, written out for one rank.
#include <algorithm>
#include <functional>

#include "core/index.hpp"
#include "core/methods/compression.hpp"
#include "run/methods/compression.hpp"
#include "run/reference/single_rank.hpp"

namespace rehearse::run {

// Each rank's gradients and what it had left out before are sent in few bits; all take the sum of what has come.
Trained train_compressed(const SingleRank& single, std::int64_t /*rank*/, int perturbation) {
    const Schedule& schedule = single.schedule();
    const ReferenceOptions& options = single.options();
    const std::unique_ptr<Program> model = single.model(perturbation);
    const std::vector<Bucket>& buckets = schedule.classes.front().part.buckets;
    const std::int64_t ranks = shards(schedule.mesh);
    std::vector<std::vector<std::vector<float>>> left(at(ranks));  // by rank and bucket
    Trained trained;
    for (int step = 0; step < options.steps; ++step) {
        std::vector<std::vector<float>> sums;
        for (const Bucket& bucket : buckets) sums.emplace_back(at(bucket.elements));
        for (std::int64_t rank = 0; rank < ranks; ++rank) {
            const std::int64_t first = rank * schedule.batch_per_rank;
            single.sum_gradients(*model, step, first, first + schedule.batch_per_rank, micro_batch_size(schedule));
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
                std::vector<float> words(
                    at(compressed_words(schedule.methods.get<Compression>(), buckets[b].elements)));
                compress(schedule.methods.get<Compression>(), own[b], words);
                add_compressed(schedule.methods.get<Compression>(), words, sums[b]);
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
        if (single.last(step)) trained.gradients = single.result(*model).gradients;
        SingleRank::update(*model);
    }
    trained.weights = single.result(*model).weights;
    return trained;
}

}  // namespace rehearse::run
