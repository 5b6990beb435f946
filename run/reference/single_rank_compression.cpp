// SPDX-License-Identifier: Apache-2.0
// What gradients in fewer bits mean, written out for one rank.
#include <algorithm>
#include <functional>
#include <map>

#include "core/index.hpp"
#include "core/methods/compression.hpp"
#include "run/methods/compression.hpp"
#include "run/reference/by_buckets.hpp"

namespace rehearse::run {

// Each rank's gradients and what it had left out before are sent in few bits; all take the sum of what has come.
Combine compressing(const Schedule& schedule) {
    using Left = std::map<std::pair<RankIndex, int>, std::vector<float>>;  // by rank and bucket
    return [by = schedule.methods.get<Compression>(), left = Left{}](
               std::span<const RankIndex> ranks, int bucket, const std::vector<std::vector<float>>& own) mutable {
        std::vector<float> sum(own.front().size());
        for (std::size_t i = 0; i < ranks.size(); ++i) {
            std::vector<float>& kept = left[{ranks[i], bucket}];
            kept.resize(sum.size());
            std::ranges::transform(kept, own[i], kept.begin(), std::plus<>{});
            std::vector<float> words(at(compressed_words(by, static_cast<std::int64_t>(sum.size()))));
            compress(by, kept, words);
            add_compressed(by, words, sum);
        }
        return sum;
    };
}

Trained train_compressed(const SingleRank& single, RankIndex /*rank*/, int perturbation) {
    return train_by_buckets(single, perturbation, compressing(single.schedule()), Of::batch);
}

}  // namespace rehearse::run
