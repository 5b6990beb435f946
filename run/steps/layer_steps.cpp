// SPDX-License-Identifier: Apache-2.0
#include "run/steps/layer_steps.hpp"

#include <algorithm>
#include <string>

#include "core/error.hpp"
#include "core/precision.hpp"
#include "core/ring_attention.hpp"
#include "core/rotary.hpp"
#include "kernels/convert.hpp"
#include "run/pieces.hpp"
#include "run/random.hpp"
#include "run/steps/places.hpp"

namespace rehearse::run {

namespace {

std::int64_t most_logits(const RankContext& rank) {
    std::int64_t most = 0;
    if (rank.schedule.precision == Precision::fp32) return most;
    for (const Layer& layer : rank.part().network.layers) {
        if (is_loss(layer.op)) most = std::max(most, elements(input_shapes(layer.op).front()) * rank.micro_batch());
    }
    return most;
}

}  // namespace

LayerSteps::LayerSteps(RankContext& rank, GradientSums& gradients, std::int64_t loss_batch)
    : rank_(rank), gradients_(gradients), versions_(rank), loss_batch_(loss_batch) {
    for (const Origin& origin : rank.part().origins) {
        keys_.push_back(origin.layer < 0 ? 0 : layer_key(rank.schedule.network.layers[at(origin.layer)].name));
    }
    const std::int64_t logits = most_logits(rank);
    const Slice scores = room_.reserve(logits), made = room_.reserve(logits);
    room_.allocate(rank.device);
    logits_ = room_.at(scores);
    logit_gradients_ = room_.at(made);
}

void LayerSteps::prepare(ReadyStep& ready, const Compute& compute) {
    require(compute.problem.type == compute_type(rank_.schedule.precision, compute.problem.op),
            "types as precision.hpp says");
    require(compute.problem.batch == rank_.micro_batch(), "a step computes one micro-batch");
    gradients_.begin_step();
    if (std::holds_alternative<Communication>(rank_.part().network.layers[at(compute.layer)].op)) {
        prepare_take(ready, compute);
    } else {
        prepare_kernel(ready, compute);
    }
    versions_.keep(ready, compute.micro_batch);
}

void LayerSteps::prepare_kernel(ReadyStep& ready, const Compute& compute) {
    const Layer& layer = rank_.part().network.layers[at(compute.layer)];
    const LayerTensors own = rank_.tensors.layer(compute.layer, compute.micro_batch);
    kernels::Buffers& buffers = ready.buffers;
    ready.kernel = &rank_.kernels.of_layer(compute.layer, compute.problem);
    const Op& op = computed(layer.op);
    if (reads_integers(op)) buffers.indices = rank_.tensors.indices(layer.inputs.front(), compute.micro_batch);
    for (const int input : layer.inputs) {
        if (reads_integers(op)) break;
        buffers.src.emplace_back(rank_.tensors.layer(input, compute.micro_batch).output);
    }
    // No backward pass reads rows: they are those that all updates so far have left, and are updated where they are.
    buffers.weights = updates_directly(op) ? own.weights : versions_.of(own.weights, compute.micro_batch);
    buffers.workspace = own.workspace;
    if (const Given* given = given_of(compute.layer)) {
        buffers.fixed = given->fixed;
        buffers.chosen = given->places;
    }
    if (!ready.step->recomputed) buffers.state = own.state;  // the statistics of a batch count once
    buffers.labels = rank_.tensors.labels(compute.micro_batch);
    // A mean over a block's pixels is a part of the mean over all.
    buffers.loss_batch = loss_batch_ * losses_of_whole(rank_, compute.layer);
    buffers.first_row = first_row(rank_, compute.layer);
    if (const auto* dropout = std::get_if<Dropout>(&op)) place_dropout(buffers, compute.layer, *dropout);
    place_turned_rows(buffers, compute.layer);
    const bool loss = is_loss(layer.op);
    if (loss) refuse_labels_left_out(ready, compute.layer);
    ready.is_loss = loss && compute.problem.pass == Pass::forward;
    if (compute.problem.pass == Pass::forward) {
        buffers.dst = own.output;
        if (loss) compute_loss_in_f32(ready);
        return;
    }
    buffers.dst_in = own.output;
    buffers.diff_dst = own.diff;
    gradients_.add_weights(ready, compute);
    if (compute.problem.pass != Pass::backward_data) return;
    for (const int input : layer.inputs) {
        buffers.diff_src.emplace_back(gradients_.give(ready, compute.layer, input, compute.micro_batch));
    }
    if (loss) compute_loss_in_f32(ready);
}

// What the file says of a layer that is whole; null: nothing.
const Given* LayerSteps::given_of(int layer) const {
    const int whole = rank_.part().origins[at(layer)].layer;
    return whole < 0 ? nullptr : rank_.schedule.network.layers[at(whole)].given.get();
}

// The mean over those that ask for something is one of a whole micro-batch: a block of it does not know it.
void LayerSteps::refuse_labels_left_out(ReadyStep& ready, int layer) const {
    if (losses_of_whole(rank_, layer) == 1 || rank_.device != nullptr) return;  // a device: run/data/handover.hpp
    ready.before = [labels = ready.buffers.labels] {
        if (std::ranges::none_of(labels, [](std::int32_t label) { return label < 0; })) return;
        throw InputError(
            "labels that ask for nothing are not left out where ranks share the loss of a sample, in this version");
    };
}

// Its input, and the gradient of that, lie in 16 bits.
void LayerSteps::compute_loss_in_f32(ReadyStep& ready) const {
    kernels::Buffers& buffers = ready.buffers;
    if (rank_.schedule.precision == Precision::fp32) return;
    const kernels::ConstView stored = buffers.src.front();
    const std::span<float> logits = logits_.first(stored.size());
    kernels::Device* const device = rank_.device;
    buffers.src.front() = logits;
    ready.host_works = device == nullptr;
    ready.before = [device, stored, logits, first = ready.before] {
        if (first) first();
        if (device != nullptr) return device->copy(stored, logits);
        kernels::convert(stored, logits);
    };
    if (buffers.diff_src.empty() || buffers.diff_src.front().empty()) return;
    const kernels::View gradient = buffers.diff_src.front();
    const std::span<float> made = logit_gradients_.first(stored.size());
    buffers.diff_src.front() = made;
    ready.after = [device, made, gradient, &scale = rank_.scale] {
        if (device != nullptr) return device->scale(made, gradient, scale.now());
        for (float& value : made) value *= scale.now();
        kernels::convert(made, gradient);
    };
}

// One's own piece: of the gradient that a gather has got, of the tensor that a slice is given.
void LayerSteps::prepare_take(ReadyStep& ready, const Compute& compute) {
    const Layer& layer = rank_.part().network.layers[at(compute.layer)];
    const auto& op = std::get<Communication>(layer.op);
    const Joint joint = joint_of(op, rank_.micro_batch());
    const std::int64_t own = rank_.coordinates[at(axis_index(rank_.schedule.mesh, op.axis))];
    const LayerTensors made = rank_.tensors.layer(compute.layer, compute.micro_batch);
    const int input = layer.inputs.front();
    if (compute.problem.pass == Pass::forward) {
        const kernels::ConstView whole = rank_.tensors.layer(input, compute.micro_batch).output;
        ready.before = [joint, own, whole, piece = made.output] { take(joint, own, whole, piece); };
        return;
    }
    const kernels::View piece = gradients_.give(ready, compute.layer, input, compute.micro_batch);
    ready.before = [joint, own, whole = made.diff, piece] { take(joint, own, whole, piece); };
}

// A piece of a sample's features gets its part of the whole sample's mask.
void LayerSteps::place_dropout(kernels::Buffers& buffers, int layer, const Dropout& dropout) {
    const Origin& origin = rank_.part().origins[at(layer)];
    const auto& whole = std::get<Dropout>(rank_.schedule.network.layers[at(origin.layer)].op);
    buffers.sample_elements = elements(whole.shape);
    if (whole.shape == dropout.shape) return;
    if (!origin.cuts.empty()) {
        buffers.places = places_.try_emplace(layer, places_in_sample(rank_, layer)).first->second;
        return;
    }
    if (const int axis = axis_index(rank_.schedule.mesh, "tensor"); axis >= 0) {
        buffers.first_element = rank_.coordinates[at(axis)] * elements(dropout.shape);
    } else {
        buffers.places = places_.try_emplace(layer, places_in_samples_of_all(rank_, dropout)).first->second;
    }
}

// By a ring, a rank has every so many-th row of a sequence that is turned by place.
void LayerSteps::place_turned_rows(kernels::Buffers& buffers, int layer) {
    const auto* turned = std::get_if<Elementwise>(&rank_.part().network.layers[at(layer)].op);
    if (turned == nullptr || !rotation_of(*turned) || !rank_.schedule.methods.get<RingAttention>().on) return;
    const Origin& origin = rank_.part().origins[at(layer)];
    const std::int64_t rows = turned->shape.front();
    const std::int64_t parts = rank_.schedule.network.layers[at(origin.layer)].output.front() / rows;
    if (parts == 1) return;
    const std::int64_t own = rank_.coordinates[at(axis_index(rank_.schedule.mesh, "context"))];
    std::vector<std::int64_t>& places = places_[layer];
    for (std::int64_t row = 0; places.size() < at(rows); ++row) places.push_back(own + row * parts);
    buffers.places = places;
}

void LayerSteps::begin(ReadyStep& ready, const Compute& compute, std::uint64_t seed, std::int64_t first_sample) const {
    ready.buffers.seed = key(seed, keys_[at(compute.layer)]);
    ready.buffers.first_sample = first_sample + compute.micro_batch * rank_.micro_batch();
}

}  // namespace rehearse::run
