// SPDX-License-Identifier: Apache-2.0
// Where gradients with several parts are added up: of micro-batches, of several readers, of shared weights.
#include "core/error.hpp"
#include "kernels/comm/reduction.hpp"
#include "kernels/convert.hpp"
#include "run/pieces.hpp"
#include "run/program.hpp"

namespace rehearse::run {

// The first micro-batch writes the gradient of the weights, each later one writes beside it, to be added; so does the
// first where gradients are kept in another type than kernels make.
void Program::accumulate(ReadyStep& ready, const Compute& compute, std::int64_t& used) {
    const Op& op = part().network.layers[at(compute.layer)].op;
    if (updates_directly(op)) {
        ready.buffers.learning_rate = hyperparameters_.learning_rate;
        return;
    }
    const kernels::View gradients = tensors_->layer(compute.layer).gradients;
    if (gradients.empty()) return;
    const bool gives = compute.problem.pass == Pass::backward_weights || !has_pass(op, Pass::backward_weights);
    const bool fresh = gives && has_weight_gradient_.insert(compute.layer).second;
    const bool first = fresh || summed_each_time_.contains(compute.layer);
    const bool as_made = gradients.type() == compute.problem.type;
    if (!gives || (first && as_made)) {
        if (as_made) ready.buffers.diff_weights = gradients;
        return;
    }
    const kernels::View part = part_of_scratch(gradients.size(), compute.problem.type, used);
    ready.buffers.diff_weights = part;
    const kernels::View wide = as_made ? kernels::View{} : part_of_scratch(gradients.size(), gradients.type(), used);
    ready.additions.push_back({gradients, part, first, wide});
}

kernels::View Program::part_of_scratch(std::size_t size, DataType type, std::int64_t& used) const {
    const kernels::View part = scratch_.view({scratch_all_.offset + used, static_cast<std::int64_t>(size), type});
    used += (static_cast<std::int64_t>(size) + 15) / 16 * 16;
    return part;
}

// Whoever shares a layer's weights comes after it in the network, so before it in the backward pass. Its gradients are
// those of all micro-batches when the last of them has reached the owner.
void Program::add_gradients_of_ties(ReadyStep& ready, const Compute& compute) {
    const bool last = compute.micro_batch + 1 == schedule_.micro_batches;
    if (!last || compute.problem.pass != Pass::backward_weights) return;
    const kernels::View own = tensors_->layer(compute.layer).gradients;
    const auto& layers = part().network.layers;
    for (std::size_t i = 0; i < layers.size(); ++i) {
        if (layers[i].weights_of != compute.layer) continue;
        const kernels::ConstView tied = tensors_->layer(static_cast<int>(i)).gradients;
        ready.additions.push_back({own.first(tied.size()), tied});
    }
}

// The first layer that reads an output, in the order of the backward pass, writes the gradient of that output; each
// later one writes its part beside it, to be added.
kernels::View Program::give(ReadyStep& ready, int layer, int input, int micro_batch, std::int64_t& used) {
    const int stored = tensors_->diff_stored_as(input);
    const kernels::View diff = tensors_->layer(stored, micro_batch).diff;
    if (diff.empty()) return diff;
    const bool first = has_gradient_.insert({stored, micro_batch}).second;
    if (first) return diff;
    require(layer != stored, "a layer does not give to itself");
    const kernels::View part = part_of_scratch(diff.size(), diff.type(), used);
    ready.additions.push_back({diff, part});
    return part;
}

// Of the gradient that a `copy` or `send` has got: its input's is the same memory, or gets it added.
void Program::pass_on(ReadyStep& ready, int layer, int micro_batch) {
    const int input = part().network.layers[at(layer)].inputs.front();
    const int stored = tensors_->diff_stored_as(input);
    const kernels::View diff = tensors_->layer(stored, micro_batch).diff;
    if (diff.empty() || tensors_->diff_stored_as(layer) == stored) {
        has_gradient_.insert({stored, micro_batch});
        return;
    }
    const bool first = has_gradient_.insert({stored, micro_batch}).second;
    ready.additions.push_back({diff, tensors_->layer(layer, micro_batch).diff, first});
}

// One's own piece: of the gradient that a gather has got, of the tensor that a slice is given.
void Program::prepare_take(ReadyStep& ready, const Compute& compute) {
    const Layer& layer = part().network.layers[at(compute.layer)];
    const auto& op = std::get<Communication>(layer.op);
    const Joint joint = joint_of(op, micro_batch_size(schedule_, rank_class_));
    const std::int64_t own = coordinates_[at(axis_index(schedule_.mesh, op.axis))];
    const LayerTensors made = tensors_->layer(compute.layer, compute.micro_batch);
    const int input = layer.inputs.front();
    if (compute.problem.pass == Pass::forward) {
        const kernels::ConstView whole = tensors_->layer(input, compute.micro_batch).output;
        ready.before = [joint, own, whole, piece = made.output] { take(joint, own, whole, piece); };
        return;
    }
    std::int64_t used = 0;
    const kernels::View piece = give(ready, compute.layer, input, compute.micro_batch, used);
    ready.before = [joint, own, whole = made.diff, piece] { take(joint, own, whole, piece); };
}

void Program::finish(const ReadyStep& ready) {
    if (ready.after) ready.after();
    for (const Addition& addition : ready.additions) {
        if (addition.first) {
            kernels::convert(addition.part, addition.sum);
            continue;
        }
        kernels::ConstView part = addition.part;
        if (!addition.wide.empty()) {
            kernels::convert(part, addition.wide);
            part = addition.wide;
        }
        require(part.type() == addition.sum.type(), "numbers of one type are added");
        kernels::add(addition.sum.type(), static_cast<std::byte*>(addition.sum.bytes()),
                     static_cast<const std::byte*>(part.bytes()), static_cast<std::int64_t>(addition.sum.size()));
    }
}

}  // namespace rehearse::run
