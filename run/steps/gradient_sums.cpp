// SPDX-License-Identifier: Apache-2.0
#include "run/steps/gradient_sums.hpp"

#include <algorithm>

#include "core/error.hpp"
#include "core/methods/bilevel.hpp"
#include "core/precision.hpp"
#include "core/weight_versions.hpp"
#include "run/pieces.hpp"

namespace rehearse::run {

namespace {

// Room for the gradients of all inputs, and of the weights, of any one layer.
std::int64_t largest_of(const RankContext& rank) {
    const Precision precision = rank.schedule.precision;
    const bool as_made = compute_type(precision) == wire_type(precision);
    std::int64_t largest = 0;
    for (const Layer& layer : rank.part().network.layers) {
        std::int64_t sum = (as_made ? 1 : 2) * (weights_read(layer.op) + 16);
        for (const Shape& shape : input_shapes(layer.op)) sum += elements(shape) * rank.micro_batch() + 16;
        largest = std::max(largest, sum);
    }
    return largest;
}

}  // namespace

std::set<int> buckets_summed_each_time(const Schedule& schedule, const RankClass& rank_class) {
    std::set<int> buckets;
    if (updates_each_micro_batch(rank_class)) return buckets;  // each sum is an update's
    for (const Step& step : rank_class.steps) {
        const auto* action = std::get_if<Communicate>(&step.action);
        if (action == nullptr || action->kind != CollectiveKind::reduce_scatter || !action->of_bucket()) continue;
        if (!is_last(schedule, rank_class, action->micro_batch)) buckets.insert(action->bucket());
    }
    return buckets;
}

GradientSums::GradientSums(RankContext& rank) : rank_(rank) {
    const std::set<int> each_time = buckets_summed_each_time(rank.schedule, rank.rank_class);
    // Also on a stage that has no weights to update, such as one of the loss alone.
    const bool updated_each_time =
        std::ranges::any_of(rank.schedule.classes, updates_each_micro_batch) || rank.schedule.methods.get<Bilevel>().on;
    for (std::size_t b = 0; b < rank.part().buckets.size(); ++b) {
        if (!updated_each_time && !each_time.contains(static_cast<int>(b))) continue;
        const std::vector<int>& layers = rank.part().buckets[b].layers;
        written_each_time_.insert(layers.begin(), layers.end());
    }
    all_ = scratch_.reserve(largest_of(rank));
    scratch_.allocate(rank.device);
}

// Along which ranks have the same weights as a layer; -1: nobody else has them.
int GradientSums::axis_of(int layer) const {
    for (const Bucket& bucket : rank_.part().buckets) {
        if (std::ranges::find(bucket.layers, layer) != bucket.layers.end()) return bucket.axis;
    }
    return -1;
}

// The first micro-batch writes the gradient of the weights, each later one writes beside it, to be added; so does the
// first where gradients are kept in another type than kernels make.
void GradientSums::add_weights(ReadyStep& ready, const Compute& compute) {
    const Op& op = rank_.part().network.layers[at(compute.layer)].op;
    if (updates_directly(op)) {
        const auto means = static_cast<float>(means_summed(rank_.schedule, axis_of(compute.layer), rank_.rank));
        ready.buffers.learning_rate = rank_.hyperparameters.learning_rate / means;
        return;
    }
    const kernels::View gradients = rank_.tensors.layer(compute.layer).gradients;
    if (!gradients.empty()) {
        const bool gives = compute.problem.pass == Pass::backward_weights || !has_pass(op, Pass::backward_weights);
        const bool fresh = gives && has_weight_gradient_.insert(compute.layer).second;
        const bool first = fresh || is_written_each_time(compute.layer);
        const bool as_made = gradients.type() == compute.problem.type;
        if (gives && !(first && as_made)) {
            const kernels::View part = part_of_scratch(gradients.size(), compute.problem.type);
            ready.buffers.diff_weights = part;
            const kernels::View wide = as_made ? kernels::View{} : part_of_scratch(gradients.size(), gradients.type());
            ready.additions.push_back({gradients, part, first, wide});
        } else if (as_made) {
            ready.buffers.diff_weights = gradients;
        }
    }
    add_ties(ready, compute);
}

kernels::View GradientSums::part_of_scratch(std::size_t size, DataType type) {
    const kernels::View part = scratch_.view({all_.offset + used_, static_cast<std::int64_t>(size), type});
    used_ += (static_cast<std::int64_t>(size) + 15) / 16 * 16;
    return part;
}

bool GradientSums::is_written_each_time(int layer) const {
    const int owner = rank_.part().network.layers[at(layer)].weights_of;
    return written_each_time_.contains(owner >= 0 ? owner : layer);
}

// Whoever shares a layer's weights comes after it in the network, so before it in the backward pass. Its gradients are
// those of all micro-batches when the last of them has reached the owner, or of this one where each is summed by
// itself.
void GradientSums::add_ties(ReadyStep& ready, const Compute& compute) const {
    const bool last =
        is_last(rank_.schedule, rank_.rank_class, compute.micro_batch) || is_written_each_time(compute.layer);
    const bool makes = compute.problem.pass == Pass::backward_weights ||
                       (compute.problem.pass == Pass::backward_data && gradients_together(compute.problem.op));
    if (!last || !makes) return;
    const kernels::View own = rank_.tensors.layer(compute.layer).gradients;
    const auto& layers = rank_.part().network.layers;
    for (std::size_t i = 0; i < layers.size(); ++i) {
        if (layers[i].weights_of != compute.layer) continue;
        const kernels::ConstView tied = rank_.tensors.layer(static_cast<int>(i)).gradients;
        ready.additions.push_back({own.first(tied.size()), tied});
    }
}

// The first layer that reads an output, in the order of the backward pass, writes the gradient of that output; each
// later one writes its part beside it, to be added.
kernels::View GradientSums::give(ReadyStep& ready, int layer, int input, int micro_batch) {
    const int stored = rank_.tensors.diff_stored_as(input);
    const kernels::View diff = rank_.tensors.layer(stored, micro_batch).diff;
    if (diff.empty()) return diff;
    const bool first = has_gradient_.insert({stored, micro_batch}).second;
    if (first) return diff;
    require(layer != stored, "a layer does not give to itself");
    const kernels::View part = part_of_scratch(diff.size(), diff.type());
    ready.additions.push_back({diff, part});
    return part;
}

kernels::View GradientSums::give_received(ReadyStep& ready, int layer, int position, int micro_batch) {
    const int stored = rank_.tensors.diff_stored_as(rank_.part().network.layers[at(layer)].inputs[at(position)]);
    const kernels::View diff = rank_.tensors.layer(stored, micro_batch).diff;
    if (diff.empty() || has_gradient_.insert({stored, micro_batch}).second) return diff;
    const kernels::View beside = room(beside_[{layer, position}], diff.size(), diff.type());
    ready.additions.push_back({diff, beside});
    return beside;
}

void GradientSums::pass_on(ReadyStep& ready, int layer, int micro_batch) {
    const int input = rank_.part().network.layers[at(layer)].inputs.front();
    const int stored = rank_.tensors.diff_stored_as(input);
    const kernels::View diff = rank_.tensors.layer(stored, micro_batch).diff;
    if (diff.empty() || rank_.tensors.diff_stored_as(layer) == stored) {
        has_gradient_.insert({stored, micro_batch});
        return;
    }
    const bool first = has_gradient_.insert({stored, micro_batch}).second;
    ready.additions.push_back({diff, rank_.tensors.layer(layer, micro_batch).diff, first});
}

}  // namespace rehearse::run
