// SPDX-License-Identifier: Apache-2.0
// What a vote on the signs of gradients means, written out for one rank.
#include "run/reference/by_buckets.hpp"
#include "run/reference/followed.hpp"

namespace rehearse::run {

Combine voting(const SingleRank& single, int perturbation) {
    return [followed = single.followed(perturbation)](std::span<const RankIndex> ranks, int bucket,
                                                      const Own& own) mutable {
        std::vector<int> votes(own.gradients.front().size());  // for above, less those for below
        for (std::size_t r = 0; r < ranks.size(); ++r) {
            std::vector<float> values = own.gradients[r];
            const std::span<const float> sent = followed.next(ranks[r], bucket);
            if (!sent.empty()) follow_signs(values, sent, followed.reach(own.reach[r]));
            followed.decide(ranks[r], bucket, signs_of(values));
            for (std::size_t i = 0; i < votes.size(); ++i) votes[i] += values[i] < 0 ? -1 : 1;
        }
        std::vector<float> decided;
        for (const int vote : votes) decided.push_back(vote > 0 ? 1.0F : vote < 0 ? -1.0F : 0.0F);
        return decided;
    };
}

// Where more of the ranks' gradients are below 0 than not, the weight goes up by the learning rate, where fewer, down,
// else it stays.
Trained train_by_vote(const SingleRank& single, RankIndex /*rank*/, int perturbation) {
    return train_by_buckets(single, perturbation, voting(single, perturbation), Of::batch);
}

}  // namespace rehearse::run
