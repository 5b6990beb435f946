// SPDX-License-Identifier: Apache-2.0
#include "run/steps/weight_versions.hpp"

#include <algorithm>
#include <utility>

#include "core/weight_versions.hpp"

namespace rehearse::run {

WeightVersions::WeightVersions(RankContext& rank) : rank_(rank) {
    if (weight_versions(rank.rank_class) == 1) return;
    versions_.assign(at(rank.rank_class.slots), std::vector<float>(rank.tensors.weights().size()));
}

kernels::View WeightVersions::of(kernels::View weights, int micro_batch) {
    if (versions_.empty() || weights.empty()) return weights;
    const std::span<float> version = versions_[at(micro_batch % rank_.rank_class.slots)];
    return version.subspan(at(weights.data() - rank_.tensors.weights().data()), weights.size());
}

void WeightVersions::keep(ReadyStep& ready, int micro_batch) {
    if (versions_.empty() || !begun_.insert(micro_batch).second) return;
    const std::span<const float> latest = rank_.tensors.weights();
    const std::span<float> version = versions_[at(micro_batch % rank_.rank_class.slots)];
    ready.before = [latest, version, also = std::move(ready.before)] {
        std::ranges::copy(latest, version.begin());
        if (also) also();
    };
}

}  // namespace rehearse::run
