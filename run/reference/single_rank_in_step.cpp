// SPDX-License-Identifier: Apache-2.0
// What it means that ranks bring gradients together in step, written out for one rank: the gradient of the whole batch,
// or, of Adasum, the ranks' own means combined two by two.
#include <algorithm>

#include "run/reference/by_buckets.hpp"
#include "run/reference/gradient_check.hpp"

namespace rehearse::run {

Trained train_in_step(const SingleRank& single, RankIndex /*rank*/, int perturbation) {
    if (std::ranges::none_of(single.schedule().classes, combines_gradients)) {
        return single.asynchronous() ? train_by_buckets(single, perturbation, summing(), Of::batch)
                                     : single.train_together(perturbation);
    }
    const auto combine = [](std::span<const RankIndex> /*ranks*/, int /*bucket*/,
                            const std::vector<std::vector<float>>& own) {
        std::vector<std::vector<double>> vectors;
        for (const std::vector<float>& one : own) vectors.emplace_back(one.begin(), one.end());
        const std::vector<double> combined = adasum_of(std::move(vectors));
        return std::vector<float>(combined.begin(), combined.end());
    };
    return train_by_buckets(single, perturbation, combine, Of::shard);
}

}  // namespace rehearse::run
