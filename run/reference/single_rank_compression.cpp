// SPDX-License-Identifier: Apache-2.0
// What gradients in fewer bits mean, written out for one rank.
#include <algorithm>
#include <functional>
#include <map>

#include "core/index.hpp"
#include "core/methods/compression.hpp"
#include "run/methods/compression.hpp"
#include "run/reference/by_buckets.hpp"
#include "run/reference/followed.hpp"

namespace rehearse::run {

// Each rank's gradients and what it had left out before are sent in few bits; all take the sum of what has come. What
// rounding reaches of what is left out adds up.
Combine compressing(const SingleRank& single, int perturbation) {
    struct Left {
        std::vector<float> values, reach;
    };
    return [by = single.schedule().methods.get<Compression>(), followed = single.followed(perturbation),
            left = std::map<std::pair<RankIndex, int>, Left>{}](std::span<const RankIndex> ranks, int bucket,
                                                                const Own& own) mutable {
        std::vector<float> sum(own.gradients.front().size());
        for (std::size_t i = 0; i < ranks.size(); ++i) {
            Left& kept = left[{ranks[i], bucket}];
            kept.values.resize(sum.size());
            std::ranges::transform(kept.values, own.gradients[i], kept.values.begin(), std::plus<>{});
            const std::span<const float> sent = followed.next(ranks[i], bucket);
            if (!sent.empty()) {
                kept.reach.resize(sum.size());
                std::ranges::transform(kept.reach, own.reach[i], kept.reach.begin(), std::plus<>{});
                if (by.kind == Compression::Kind::top) {
                    follow_largest(kept.values, sent, followed.reach(kept.reach));
                } else {
                    follow_signs(kept.values, sent.subspan(2), followed.reach(kept.reach));  // behind both means
                }
            }
            std::vector<float> words(at(compressed_words(by, static_cast<std::int64_t>(sum.size()))));
            compress(by, kept.values, words);
            add_compressed(by, words, sum);
            followed.decide(ranks[i], bucket, std::move(words));
        }
        return sum;
    };
}

Trained train_compressed(const SingleRank& single, RankIndex /*rank*/, int perturbation) {
    return train_by_buckets(single, perturbation, compressing(single, perturbation), Of::batch);
}

}  // namespace rehearse::run
