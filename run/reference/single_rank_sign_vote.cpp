// SPDX-License-Identifier: Apache-2.0
// What a vote on the signs of gradients means, written out for one rank.
#include "run/reference/by_buckets.hpp"

namespace rehearse::run {

Combine voting() {
    return [](std::span<const RankIndex> /*ranks*/, int /*bucket*/, const std::vector<std::vector<float>>& own) {
        std::vector<float> decided;
        for (std::size_t i = 0; i < own.front().size(); ++i) {
            int votes = 0;  // for above, less those for below
            for (const std::vector<float>& one : own) votes += one[i] < 0 ? -1 : 1;
            decided.push_back(votes > 0 ? 1.0F : votes < 0 ? -1.0F : 0.0F);
        }
        return decided;
    };
}

// Where more of the ranks' gradients are below 0 than not, the weight goes up by the learning rate, where fewer, down,
// else it stays.
Trained train_by_vote(const SingleRank& single, RankIndex /*rank*/, int perturbation) {
    return train_by_buckets(single, perturbation, voting(), Of::batch);
}

}  // namespace rehearse::run
