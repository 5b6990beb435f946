// SPDX-License-Identifier: Apache-2.0
#include "core/methods/trust_ratios.hpp"

#include <algorithm>
#include <set>

namespace rehearse {

std::vector<int> axes_of_norms(const Mesh& mesh, const Part& part, const Bucket& bucket, int sharded) {
    std::vector<int> axes;
    if (sharded >= 0 && size_of(mesh, sharded) > 1) axes.push_back(sharded);
    std::set<int> cutting;
    for (const int layer : bucket.layers) {
        const Origin& origin = part.origins[at(layer)];
        const auto count = static_cast<int>(weights(part.network.layers[at(layer)].op).size());
        for (const Cut& cut : origin.cuts) {
            const bool own = cut.tensor >= origin.tensor && cut.tensor < origin.tensor + count;
            if (own && size_of(mesh, cut.axis) > 1) cutting.insert(cut.axis);
        }
    }
    axes.insert(axes.end(), cutting.begin(), cutting.end());
    return axes;
}

bool by_known_norms(const Schedule& schedule, const Update& update) {
    return schedule.optimizer == Optimizer::lamb && std::holds_alternative<AdamUpdate>(update.problem.op);
}

bool has_known_norms(const Schedule& schedule) {
    return std::ranges::any_of(schedule.classes, [&](const RankClass& rank_class) {
        return std::ranges::any_of(rank_class.steps, [&](const Step& step) {
            const auto* update = std::get_if<Update>(&step.action);
            return update != nullptr && by_known_norms(schedule, *update);
        });
    });
}

}  // namespace rehearse
