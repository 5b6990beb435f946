// SPDX-License-Identifier: Apache-2.0
#include "run/steps/updates.hpp"

#include <algorithm>

#include "core/methods/trust_ratios.hpp"
#include "kernels/convert.hpp"
#include "run/train.hpp"

namespace rehearse::run {

Updates::Updates(RankContext& rank) : rank_(rank) {
    std::int64_t most = 0;
    for (const Bucket& bucket : rank.part().buckets) most = std::max(most, rank.scale.on() ? bucket.elements : 0);
    const Slice divided = room_.reserve(most);
    room_.allocate(rank.device);
    unscaled_ = room_.at(divided);
}

void Updates::prepare(ReadyStep& ready, const Update& update) {
    const Optimizer optimizer = rank_.schedule.optimizer;
    const BucketTensors& bucket = rank_.tensors.bucket(update.bucket);
    Range own{0, static_cast<std::int64_t>(bucket.weights.size())};
    Problem problem = update.problem;
    if (update.sharded >= 0) {
        own = rank_.own_piece(update.bucket);
        const Optimizer by = by_known_norms(rank_.schedule, update) ? Optimizer::adam : optimizer;
        problem.op = update_op(by, own.end - own.begin, 1);
    }
    counts_.try_emplace(update.bucket, 0);
    ready.kernel = &rank_.kernels.of_problem(problem);
    const auto mine = [&](kernels::View whole) { return whole.subspan(at(own.begin), at(own.end - own.begin)); };
    ready.buffers.weights = mine(bucket.weights);
    ready.buffers.diff_weights = mine(bucket.applied);
    ready.buffers.momentum = mine(bucket.momentum);
    if (!bucket.copy.empty()) ready.buffers.weights_copy = mine(bucket.copy);
    if (rank_.scale.on()) ready.scaled = ready.buffers.diff_weights;
    if (!bucket.second_moment.empty()) ready.buffers.second_moment = mine(bucket.second_moment);
    if (std::holds_alternative<LambUpdate>(problem.op)) ready.buffers.tensor_sizes = bucket.tensor_sizes;
    ready.buffers.second_factor = rank_.hyperparameters.second_factor;
    const float epsilon = rank_.hyperparameters.epsilon;
    ready.buffers.epsilon = epsilon > 0 ? epsilon : default_epsilon(optimizer);
    ready.buffers.update_count = 0;
    ready.buffers.learning_rate = rank_.hyperparameters.learning_rate;
    ready.buffers.momentum_factor = rank_.hyperparameters.momentum;
    ready.buffers.weight_decay = rank_.hyperparameters.weight_decay;
}

// The update reads f32: divided in f16, what the scale had saved would vanish again.
void Updates::begin(ReadyStep& ready, const Update& update) {
    ready.buffers.update_count = ++counts_[update.bucket];
    if (!rank_.scale.on()) return;
    const std::span<float> gradients = unscaled_.first(ready.scaled.size());
    if (rank_.device != nullptr) {
        rank_.device->scale(ready.scaled, gradients, 1 / rank_.scale.applied());
    } else {
        kernels::convert(ready.scaled, gradients);
        for (float& value : gradients) value /= rank_.scale.applied();
    }
    ready.buffers.diff_weights = gradients;
}

void Updates::set_count(std::int64_t count) {
    for (auto& [bucket, updates] : counts_) updates = count;
}

}  // namespace rehearse::run
