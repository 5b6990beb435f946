// SPDX-License-Identifier: Apache-2.0
#include "run/program.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "core/error.hpp"
#include "core/weight_versions.hpp"
#include "kernels/comm/reduction.hpp"
#include "kernels/convert.hpp"
#include "run/pieces.hpp"
#include "run/random.hpp"

namespace rehearse::run {

namespace {

std::size_t at(std::int64_t index) { return static_cast<std::size_t>(index); }

void check_compute(const Schedule& schedule, const Compute& compute) {
    require(compute.problem.type == compute_type(schedule.precision, compute.problem.op),
            "types as precision.hpp says");
    require(compute.problem.batch == micro_batch_size(schedule), "a step computes one micro-batch");
}

bool again(const Step& step) { return step.name.find(":again") != std::string::npos; }

[[noreturn]] void refuse(const Step& step, std::string_view kind) {
    throw InputError(fmt::format("step '{}' {}: run does not execute that in this version", step.name, kind));
}

}  // namespace

Program::Program(const Schedule& schedule, std::int64_t rank, const Wish& wish, std::uint64_t seed,
                 const Hyperparameters& hyperparameters)
    : schedule_(schedule),
      rank_class_(schedule.classes.at(at(class_of(schedule, rank)))),
      device_(wish.device),
      coordinates_(coordinates(schedule.mesh, rank)),
      hyperparameters_(hyperparameters),
      joints_(rank_class_.part.network.layers.size()),
      beside_(joints_.size()),
      sent_(rank_class_.part.buckets.size()),
      scale_(scales() ? hyperparameters.loss_scale : 1) {
    choose_backends(wish);
    std::vector<const kernels::Backend*> backends;  // whoever runs forward says what is kept for backward
    for (const kernels::PassChoices& choices : choices_) backends.push_back(of(choices, Pass::forward).backend);
    tensors_ = std::make_unique<Tensors>(schedule, rank_class_, rank, backends, seed, device_);
    reserve_scratch();
    if (const SoftmaxLoss& loss = loss_of(schedule.network); !loss.image.empty()) {
        pixel_classes_ = loss.classes;
        confusion_.resize(at(loss.classes * loss.classes));
    }
    find_sums_of_micro_batches();
    make_weight_versions();
    for (const Step& step : rank_class_.steps) {
        ReadyStep ready;
        ready.step = &step;
        if (const auto* compute = std::get_if<Compute>(&step.action)) {
            check_compute(schedule, *compute);
            prepare(ready, *compute, wish.scratch_limit);
            keep_version(ready, compute->micro_batch);
        } else if (const auto* update = std::get_if<Update>(&step.action)) {
            prepare(ready, *update, wish);
        } else if (const auto* communicate = std::get_if<Communicate>(&step.action)) {
            prepare(ready, *communicate);
        } else if (const auto* send = std::get_if<Send>(&step.action)) {
            prepare(ready, *send);
        } else if (const auto* recv = std::get_if<Recv>(&step.action)) {
            prepare(ready, *recv);
        } else {
            refuse(step, "reads from storage");
        }
        steps_.push_back(std::move(ready));
    }
    let_go_of_gathered_weights();
}

void Program::find_sums_of_micro_batches() {
    for (const Step& step : rank_class_.steps) {
        const auto* action = std::get_if<Communicate>(&step.action);
        if (action == nullptr || action->kind != CollectiveKind::reduce_scatter || action->bucket < 0) continue;
        if (action->micro_batch + 1 == schedule_.micro_batches) continue;
        const Range own = own_piece(action->bucket);
        sums_[action->bucket].resize(tensors_->gradients().first(at(own.end - own.begin)).size_bytes());
        const std::vector<int>& layers = part().buckets[at(action->bucket)].layers;
        summed_each_time_.insert(layers.begin(), layers.end());
    }
}

void Program::choose_backends(const Wish& wish) {
    const auto& layers = part().network.layers;
    for (std::size_t i = 0; i < layers.size(); ++i) {
        const int origin = part().origins[i].layer;
        layer_keys_.push_back(origin < 0 ? 0 : layer_key(schedule_.network.layers[at(origin)].name));
        const bool computes =
            has_pass(layers[i].op, Pass::forward) && !std::holds_alternative<Communication>(layers[i].op);
        choices_.push_back(computes ? kernels::choose_passes(layers[i].op, micro_batch_size(schedule_),
                                                             compute_type(schedule_.precision, layers[i].op), wish)
                                    : kernels::PassChoices{});
        has_loss_ = has_loss_ || is_loss(layers[i].op);
        if (std::holds_alternative<ChannelSums>(layers[i].op) && schedule_.precision != Precision::fp32) {
            throw InputError(
                fmt::format("layer '{}' sums what spatial cuts: run does that in fp32 only, not in {}: sums of squares "
                            "do not fit into 16 bits",
                            layers[i].name, to_string(schedule_.precision)));
        }
        check_tie(i);
    }
    check_inputs();
}

void Program::check_inputs() const {
    const auto& layers = part().network.layers;
    bool integers = false;
    for (std::size_t i = 0; i < layers.size(); ++i) {
        const auto* input = std::get_if<Input>(&layers[i].op);
        if (input != nullptr && (input->vocabulary > 0 ? std::exchange(integers, true) : i > 0)) {
            throw InputError(
                fmt::format("network '{}' has a second input, '{}': run feeds one of numbers, the first "
                            "layer, and one of integers",
                            schedule_.network.name, layers[i].name));
        }
        const bool fed =
            !reads_integers(layers[i].op) || std::holds_alternative<Input>(layers[at(layers[i].inputs.front())].op);
        if (!fed) {
            throw InputError(
                fmt::format("layer '{}' reads ids of another stage: run does not send integers", layers[i].name));
        }
    }
}

void Program::check_tie(std::size_t layer) const {
    const int origin = part().origins[layer].layer;
    if (origin < 0 || part().network.layers[layer].weights_of >= 0) return;
    if (schedule_.network.layers[at(origin)].weights_of < 0) return;
    throw InputError(
        fmt::format("layer '{}' shares weights with another stage: run does not sum their gradients in "
                    "this version",
                    part().network.layers[layer].name));
}

// Room for the gradients of all inputs, and of the weights, of any one layer.
void Program::reserve_scratch() {
    std::int64_t largest = 0;
    for (const Layer& layer : part().network.layers) {
        std::int64_t sum = weights_read(layer.op) + 16;
        for (const Shape& shape : input_shapes(layer.op)) sum += elements(shape) * micro_batch_size(schedule_) + 16;
        largest = std::max(largest, sum);
    }
    scratch_all_ = scratch_.reserve(largest);
    std::int64_t logits = 0, unscaled = 0;
    if (schedule_.precision != Precision::fp32) {
        for (const Layer& layer : part().network.layers) {
            if (!is_loss(layer.op)) continue;
            logits = std::max(logits, elements(input_shapes(layer.op).front()) * micro_batch_size(schedule_));
        }
    }
    for (const Bucket& bucket : part().buckets) unscaled = std::max(unscaled, scales() ? bucket.elements : 0);
    const Slice scores = scratch_.reserve(logits), gradients = scratch_.reserve(logits);
    const Slice divided = scratch_.reserve(unscaled);
    scratch_.allocate(device_);
    logits_ = scratch_.at(scores);
    logit_gradients_ = scratch_.at(gradients);
    unscaled_ = scratch_.at(divided);
}

Movement Program::movement(int layer) const {
    return std::get<Communication>(part().network.layers[at(layer)].op).movement;
}

// Layers of the same problem share a kernel: what differs between them lies in the buffers.
kernels::Kernel& Program::kernel_of(const Problem& problem, const kernels::Choice& choice, Bytes scratch_limit) {
    auto& kernel =
        kernels_[fmt::format("{}/{}/{}", to_string(problem), kernels::full_name(*choice.backend), choice.threads)];
    if (kernel == nullptr) kernel = kernels::prepare(choice, problem, scratch_limit);
    return *kernel;
}

void Program::prepare(ReadyStep& ready, const Compute& compute, Bytes scratch_limit) {
    const Layer& layer = part().network.layers[at(compute.layer)];
    if (std::holds_alternative<Communication>(layer.op)) return prepare_take(ready, compute);
    const LayerTensors own = tensors_->layer(compute.layer, compute.micro_batch);
    kernels::Buffers& buffers = ready.buffers;
    ready.kernel = &kernel_of(compute.problem, of(choices_[at(compute.layer)], compute.problem.pass), scratch_limit);
    if (reads_integers(layer.op)) buffers.indices = tensors_->indices(compute.micro_batch);
    for (const int input : layer.inputs) {
        if (reads_integers(layer.op)) break;
        buffers.src.emplace_back(tensors_->layer(input, compute.micro_batch).output);
    }
    buffers.weights = version_of(own.weights, compute.micro_batch);
    buffers.workspace = own.workspace;
    if (!again(*ready.step)) buffers.state = own.state;  // the statistics of a batch count once
    buffers.labels = tensors_->labels(compute.micro_batch);
    buffers.loss_batch = loss_batch(compute.layer);
    buffers.first_row = first_row(compute.layer);
    if (const auto* dropout = std::get_if<Dropout>(&layer.op)) place_dropout(buffers, compute.layer, *dropout);
    const bool loss = is_loss(layer.op);
    ready.is_loss = loss && compute.problem.pass == Pass::forward;
    if (compute.problem.pass == Pass::forward) {
        buffers.dst = own.output;
        if (loss) compute_loss_in_f32(ready);
        return;
    }
    buffers.dst_in = own.output;
    buffers.diff_dst = own.diff;
    std::int64_t used = 0;
    accumulate(ready, compute, used);
    add_gradients_of_ties(ready, compute);
    if (compute.problem.pass != Pass::backward_data) return;
    for (const int input : layer.inputs) {
        buffers.diff_src.emplace_back(give(ready, compute.layer, input, compute.micro_batch, used));
    }
    if (loss) compute_loss_in_f32(ready);
}

// Its input, and the gradient of that, lie in 16 bits.
void Program::compute_loss_in_f32(ReadyStep& ready) {
    kernels::Buffers& buffers = ready.buffers;
    if (schedule_.precision == Precision::fp32) return;
    const kernels::ConstView stored = buffers.src.front();
    const std::span<float> logits = logits_.first(stored.size());
    buffers.src.front() = logits;
    ready.before = [stored, logits] { kernels::convert(stored, logits); };
    if (buffers.diff_src.empty() || buffers.diff_src.front().empty()) return;
    const kernels::View gradient = buffers.diff_src.front();
    const std::span<float> made = logit_gradients_.first(stored.size());
    buffers.diff_src.front() = made;
    ready.after = [this, made, gradient] {
        for (float& value : made) value *= scale_;
        kernels::convert(made, gradient);
    };
}

// A mean over a block's pixels is a part of the mean over all.
std::int64_t Program::loss_batch(int layer) const {
    const std::int64_t batch = global_batch(schedule_) / (asynchronous_ ? schedule_.micro_batches : 1);
    const auto* loss = std::get_if<SoftmaxLoss>(&part().network.layers[at(layer)].op);
    if (loss == nullptr || loss->image.empty()) return batch;
    const Op& whole = schedule_.network.layers[at(part().origins[at(layer)].layer)].op;
    return batch * (elements(std::get<SoftmaxLoss>(whole).image) / elements(loss->image));
}

// A piece of a sample's features gets its part of the whole sample's mask.
void Program::place_dropout(kernels::Buffers& buffers, int layer, const Dropout& dropout) {
    const auto& whole = std::get<Dropout>(schedule_.network.layers[at(part().origins[at(layer)].layer)].op);
    buffers.sample_elements = elements(whole.shape);
    if (whole.shape == dropout.shape) return;
    if (!part().origins[at(layer)].cuts.empty()) {
        buffers.places = places_.try_emplace(layer, places_in_sample(layer)).first->second;
        return;
    }
    const int axis = axis_index(schedule_.mesh, "tensor");
    if (axis < 0) {
        throw InputError(
            fmt::format("layer '{}' drops out columns of other ranks' samples (dense=shared): run draws masks "
                        "for its own samples only; choose dense=copied, or a network without it",
                        part().network.layers[at(layer)].name));
    }
    buffers.first_element = coordinates_[at(axis)] * elements(dropout.shape);
}

// Of a table or of scores that lie in parts on the ranks.
std::int64_t Program::first_row(int layer) const {
    const Op& op = part().network.layers[at(layer)].op;
    const auto* table = std::get_if<Embedding>(&op);
    const auto* scores = std::get_if<SoftmaxTerms>(&op);
    const std::int64_t parts = table != nullptr ? table->parts : scores != nullptr ? scores->parts : 1;
    if (parts == 1) return 0;
    const int axis = axis_index(schedule_.mesh, "tensor");
    require(axis >= 0, "only the tensor axis cuts a table");
    return coordinates_[at(axis)] * (table != nullptr ? table->vocabulary : scores->classes);
}

// The first micro-batch writes the gradient of the weights, each later one writes beside it, to be added.
void Program::accumulate(ReadyStep& ready, const Compute& compute, std::int64_t& used) {
    const Op& op = part().network.layers[at(compute.layer)].op;
    const kernels::View gradients = tensors_->layer(compute.layer).gradients;
    if (gradients.empty()) return;
    const bool gives = compute.problem.pass == Pass::backward_weights || !has_pass(op, Pass::backward_weights);
    const bool fresh = gives && has_weight_gradient_.insert(compute.layer).second;
    if (!gives || fresh || summed_each_time_.contains(compute.layer)) {
        ready.buffers.diff_weights = gradients;
        return;
    }
    const kernels::View part = part_of_scratch(gradients.size(), gradients.type(), used);
    ready.buffers.diff_weights = part;
    ready.additions.push_back({gradients, part});
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
    const Joint joint = joint_of(op, micro_batch_size(schedule_));
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

void Program::prepare(ReadyStep& ready, const Update& update, const Wish& wish) {
    const BucketTensors& bucket = tensors_->bucket(update.bucket);
    Range own{0, static_cast<std::int64_t>(bucket.weights.size())};
    Problem problem = update.problem;
    if (update.sharded >= 0) {
        own = own_piece(update.bucket);
        problem.op = update_op(schedule_.optimizer, own.end - own.begin, 1);
    }
    const kernels::PassChoices choices = kernels::choose_passes(problem.op, 1, problem.type, wish);
    ready.kernel = &kernel_of(problem, of(choices, Pass::update), wish.scratch_limit);
    const auto mine = [&](kernels::View whole) { return whole.subspan(at(own.begin), at(own.end - own.begin)); };
    ready.buffers.weights = mine(bucket.weights);
    ready.buffers.diff_weights = mine(bucket.applied);
    ready.buffers.momentum = mine(bucket.momentum);
    if (!bucket.copy.empty()) ready.buffers.weights_copy = mine(bucket.copy);
    if (scales()) ready.scaled = ready.buffers.diff_weights;
    if (!bucket.second_moment.empty()) ready.buffers.second_moment = mine(bucket.second_moment);
    if (schedule_.optimizer == Optimizer::lamb) ready.buffers.tensor_sizes = bucket.tensor_sizes;
    ready.buffers.second_factor = hyperparameters_.second_factor;
    // Kingma and Ba 2015; You et al. 2020.
    ready.buffers.epsilon = schedule_.optimizer == Optimizer::lamb ? 1e-6F : 1e-8F;
    ready.buffers.update_count = 0;
    ready.buffers.learning_rate = hyperparameters_.learning_rate;
    ready.buffers.momentum_factor = hyperparameters_.momentum;
    ready.buffers.weight_decay = hyperparameters_.weight_decay;
}

void Program::begin_step() {
    loss_ = 0;
    std::ranges::fill(confusion_, 0.0);
    tensors_->round_input();
    if (schedule_.lag == 0) return;
    tensors_->keep_gradients();
    kept_scale_ = std::exchange(made_scale_, scale_);
    ++begun_;
}

void Program::finish(const ReadyStep& ready) {
    if (ready.after) ready.after();
    for (const Addition& addition : ready.additions) {
        if (addition.first) {
            copy(addition.part, addition.sum);
            continue;
        }
        require(addition.part.type() == addition.sum.type(), "numbers of one type are added");
        kernels::add(addition.sum.type(), static_cast<std::byte*>(addition.sum.bytes()),
                     static_cast<const std::byte*>(addition.part.bytes()),
                     static_cast<std::int64_t>(addition.sum.size()));
    }
}

void Program::compute(ReadyStep& ready, std::uint64_t seed, std::int64_t first_sample) {
    if (const auto* compute = std::get_if<Compute>(&ready.step->action)) {
        ready.buffers.seed = key(seed, layer_keys_[at(compute->layer)]);
        ready.buffers.first_sample = first_sample + compute->micro_batch * micro_batch_size(schedule_);
    }
    if (const auto* update = std::get_if<Update>(&ready.step->action)) {
        if (skips_ || !applies()) return;
        ready.buffers.update_count = ++updates_[update->bucket];
        if (scales()) wait_for_device();
        if (scales()) unscale(ready);
    }
    if (ready.before) wait_for_device();
    if (ready.before) ready.before();
    if (ready.kernel != nullptr) ready.kernel->run(ready.buffers);
    if (device_ == nullptr) {
        finish(ready);
    } else {
        add_up(ready);
    }
    if (!ready.is_loss || counts_loss_at_end()) return;
    wait_for_device();
    count_loss(ready);
}

// What finish() does, on the device.
void Program::add_up(const ReadyStep& ready) {
    if (ready.after) {
        wait_for_device();
        ready.after();
    }
    for (const auto& [sum, part, first] : ready.additions) {
        if (first) {
            device_->copy(part, sum);
        } else {
            device_->add(sum, part);
        }
    }
}

void Program::wait_for_device() const {
    if (device_ != nullptr) device_->finish();
}

// Of the only micro-batch it is still there when all is computed: no need to wait in the middle.
bool Program::counts_loss_at_end() const { return device_ != nullptr && schedule_.micro_batches == 1; }

void Program::count_loss(const ReadyStep& ready) {
    for (const float loss : ready.buffers.dst) loss_ += loss;
    if (pixel_classes_ > 0) count_pixels(ready);
}

void Program::end_step() {
    if (device_ == nullptr) return;
    device_->finish();
    for (const ReadyStep& ready : steps_) {
        if (ready.is_loss && counts_loss_at_end()) count_loss(ready);
    }
}

Program::Placed Program::placed() const {
    Placed placed;
    for (std::size_t i = 0; i < choices_.size(); ++i) {
        const kernels::Backend* const backend = of(choices_[i], Pass::forward).backend;
        if (backend == nullptr) continue;
        ++placed.layers;
        if (device_ == nullptr || device_->owns(*backend)) continue;
        ++placed.on_host;
        placed.kinds.emplace(kind_of(part().network.layers[i].op));
    }
    return placed;
}

void Program::compute_gradients(std::uint64_t seed, std::int64_t first_sample) {
    begin_step();
    for (ReadyStep& ready : steps_) {
        if (std::holds_alternative<Compute>(ready.step->action)) compute(ready, seed, first_sample);
    }
    end_step();
}

}  // namespace rehearse::run
