// SPDX-License-Identifier: Apache-2.0
// What it means that ranks bring gradients together in step, written out for one rank: the gradient of the whole batch,
// or, of Adasum, the ranks' own means combined two by two.
#include <algorithm>

#include "run/reference/by_buckets.hpp"
#include "run/reference/gradient_check.hpp"

namespace rehearse::run {

Combine combining_by_adasum() {
    return [](std::span<const RankIndex> /*ranks*/, int /*bucket*/, const Own& own) {
        std::vector<std::vector<double>> vectors;
        for (const std::vector<float>& one : own.gradients) vectors.emplace_back(one.begin(), one.end());
        const std::vector<double> combined = adasum_of(std::move(vectors));
        return std::vector<float>(combined.begin(), combined.end());
    };
}

Trained train_in_step(const SingleRank& single, RankIndex /*rank*/, int perturbation) {
    const bool combines = std::ranges::any_of(single.schedule().classes, combines_gradients);
    if (!combines && !single.asynchronous()) return single.train_together(perturbation);
    const Combined by = combined_by(single, perturbation);
    return train_by_buckets(single, perturbation, by.combine, by.of);
}

}  // namespace rehearse::run
