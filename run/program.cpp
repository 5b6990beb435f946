// SPDX-License-Identifier: Apache-2.0
#include "run/program.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "core/error.hpp"
#include "core/weight_versions.hpp"
#include "run/pieces.hpp"
#include "run/random.hpp"

namespace rehearse::run {

namespace {

std::size_t at(std::int64_t index) { return static_cast<std::size_t>(index); }

void check_compute(const Schedule& schedule, const Step& step, const Compute& compute) {
    if (compute.problem.type != DataType::f32) {
        throw InputError(fmt::format("step '{}' computes in {}: run computes in f32 in this version (--precision fp32)",
                                     step.name, to_string(compute.problem.type)));
    }
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
      coordinates_(coordinates(schedule.mesh, rank)),
      hyperparameters_(hyperparameters),
      joints_(rank_class_.part.network.layers.size()),
      beside_(joints_.size()) {
    choose_backends(wish);
    std::vector<const kernels::Backend*> backends;  // whoever runs forward says what is kept for backward
    for (const kernels::PassChoices& choices : choices_) backends.push_back(of(choices, Pass::forward).backend);
    tensors_ = std::make_unique<Tensors>(schedule, rank_class_, rank, backends, seed);
    reserve_scratch();
    find_sums_of_micro_batches();
    make_weight_versions();
    for (const Step& step : rank_class_.steps) {
        ReadyStep ready;
        ready.step = &step;
        if (const auto* compute = std::get_if<Compute>(&step.action)) {
            check_compute(schedule, step, *compute);
            prepare(ready, *compute, wish.scratch_limit);
            keep_version(ready, compute->micro_batch);
        } else if (const auto* update = std::get_if<Update>(&step.action)) {
            prepare(ready, *update, wish);
        } else if (const auto* communicate = std::get_if<Communicate>(&step.action)) {
            if (communicate->type != DataType::f32) refuse(step, fmt::format("sends {}", to_string(communicate->type)));
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
        sums_[action->bucket].resize(at(own.end - own.begin));
        const std::vector<int>& layers = part().buckets[at(action->bucket)].layers;
        summed_each_time_.insert(layers.begin(), layers.end());
    }
}

// PipeDream's weight stashing: what a micro-batch's forward pass reads is kept for its backward pass.
void Program::make_weight_versions() {
    asynchronous_ = updates_each_micro_batch(rank_class_);
    if (!asynchronous_) return;
    for (const Bucket& bucket : part().buckets) summed_each_time_.insert(bucket.layers.begin(), bucket.layers.end());
    if (weight_versions(rank_class_) == 1) return;
    versions_.assign(at(rank_class_.slots), std::vector<float>(tensors_->weights().size()));
}

std::span<float> Program::version_of(std::span<float> weights, int micro_batch) {
    if (versions_.empty() || weights.empty()) return weights;
    const std::span<float> version = versions_[at(micro_batch % rank_class_.slots)];
    return version.subspan(at(weights.data() - tensors_->weights().data()), weights.size());
}

void Program::keep_version(ReadyStep& ready, int micro_batch) {
    if (versions_.empty() || !begun_.insert(micro_batch).second) return;
    const std::span<const float> latest = tensors_->weights();
    const std::span<float> version = versions_[at(micro_batch % rank_class_.slots)];
    ready.before = [latest, version, also = std::move(ready.before)] {
        std::ranges::copy(latest, version.begin());
        if (also) also();
    };
}

// This rank's share where the ranks share a bucket.
Range Program::own_piece(int bucket) const {
    const Bucket& of = part().buckets[at(bucket)];
    const std::int64_t ranks = size_of(schedule_.mesh, of.axis);
    return Collective{CollectiveKind::reduce_scatter, {}, {ranks, ranks}, of.elements}.chunk(
        place_on(schedule_.mesh, of.axis, rank_at(schedule_.mesh, coordinates_)));
}

// Weights of which this rank keeps its piece only stay where they lie when they are let go: some of the others' become
// NaN, so that whoever reads them before they are gathered again spoils the loss.
void Program::let_go_of_gathered_weights() {
    if (!gathers_weights(rank_class_)) return;
    const auto spoil = [this](int bucket) {
        constexpr std::int64_t marks = 16;
        const std::span<float> all = tensors_->bucket(bucket).weights;
        const Range own = own_piece(bucket);
        for (std::int64_t i = 0; i < marks; ++i) {
            const std::int64_t place = static_cast<std::int64_t>(all.size()) * i / marks;
            if (place < own.begin || place >= own.end) all[at(place)] = std::numeric_limits<float>::quiet_NaN();
        }
    };
    std::vector<int> bucket_of(part().network.layers.size(), -1);
    for (std::size_t b = 0; b < part().buckets.size(); ++b) {
        for (const int layer : part().buckets[b].layers) bucket_of[at(layer)] = static_cast<int>(b);
    }
    std::map<int, std::size_t> last_use;  // by bucket
    for (std::size_t i = 0; i < steps_.size(); ++i) {
        const Action& action = steps_[i].step->action;
        if (const auto* compute = std::get_if<Compute>(&action)) {
            const int owner = part().network.layers[at(compute->layer)].weights_of;
            last_use[bucket_of[at(owner < 0 ? compute->layer : owner)]] = i;
        } else if (const auto* gather = std::get_if<Communicate>(&action);
                   gather != nullptr && gather->bucket >= 0 && gather->kind == CollectiveKind::all_gather) {
            const auto used = last_use.find(gather->bucket);
            if (used == last_use.end()) continue;
            steps_[used->second].after = [spoil, bucket = gather->bucket] { spoil(bucket); };
        } else if (const auto* update = std::get_if<Update>(&action); update != nullptr && update->sharded >= 0) {
            steps_[i].after = [spoil, bucket = update->bucket] { spoil(bucket); };
        }
    }
}

void Program::choose_backends(const Wish& wish) {
    const auto& layers = part().network.layers;
    for (std::size_t i = 0; i < layers.size(); ++i) {
        const int origin = part().origins[i].layer;
        layer_keys_.push_back(origin < 0 ? 0 : layer_key(schedule_.network.layers[at(origin)].name));
        const bool computes =
            has_pass(layers[i].op, Pass::forward) && !std::holds_alternative<Communication>(layers[i].op);
        choices_.push_back(computes
                               ? kernels::choose_passes(layers[i].op, micro_batch_size(schedule_), DataType::f32, wish)
                               : kernels::PassChoices{});
        has_loss_ = has_loss_ || is_loss(layers[i].op);
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
    scratch_.allocate();
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
    buffers.loss_batch = global_batch(schedule_) / (asynchronous_ ? schedule_.micro_batches : 1);
    buffers.first_row = first_row(compute.layer);
    if (const auto* dropout = std::get_if<Dropout>(&layer.op)) place_dropout(buffers, compute.layer, *dropout);
    ready.is_loss = is_loss(layer.op) && compute.problem.pass == Pass::forward;
    if (compute.problem.pass == Pass::forward) {
        buffers.dst = own.output;
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
}

// A piece of a sample's features gets its part of the whole sample's mask.
void Program::place_dropout(kernels::Buffers& buffers, int layer, const Dropout& dropout) const {
    const auto& whole = std::get<Dropout>(schedule_.network.layers[at(part().origins[at(layer)].layer)].op);
    buffers.sample_elements = elements(whole.shape);
    if (whole.shape == dropout.shape) return;
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
    const std::span<float> gradients = tensors_->layer(compute.layer).gradients;
    if (gradients.empty()) return;
    const bool gives = compute.problem.pass == Pass::backward_weights || !has_pass(op, Pass::backward_weights);
    const bool fresh = gives && has_weight_gradient_.insert(compute.layer).second;
    if (!gives || fresh || summed_each_time_.contains(compute.layer)) {
        ready.buffers.diff_weights = gradients;
        return;
    }
    const std::span<float> part =
        scratch_.at({scratch_all_.offset + used, static_cast<std::int64_t>(gradients.size())});
    used += (static_cast<std::int64_t>(part.size()) + 15) / 16 * 16;
    ready.buffers.diff_weights = part;
    ready.additions.push_back({gradients, part});
}

// Whoever shares a layer's weights comes after it in the network, so before it in the backward pass. Its gradients are
// those of all micro-batches when the last of them has reached the owner.
void Program::add_gradients_of_ties(ReadyStep& ready, const Compute& compute) {
    const bool last = compute.micro_batch + 1 == schedule_.micro_batches;
    if (!last || compute.problem.pass != Pass::backward_weights) return;
    const std::span<float> own = tensors_->layer(compute.layer).gradients;
    const auto& layers = part().network.layers;
    for (std::size_t i = 0; i < layers.size(); ++i) {
        if (layers[i].weights_of != compute.layer) continue;
        const std::span<const float> tied = tensors_->layer(static_cast<int>(i)).gradients;
        ready.additions.push_back({own.first(tied.size()), tied});
    }
}

// The first layer that reads an output, in the order of the backward pass, writes the gradient of that output; each
// later one writes its part beside it, to be added.
std::span<float> Program::give(ReadyStep& ready, int layer, int input, int micro_batch, std::int64_t& used) {
    const int stored = tensors_->diff_stored_as(input);
    const std::span<float> diff = tensors_->layer(stored, micro_batch).diff;
    if (diff.empty()) return diff;
    const bool first = has_gradient_.insert({stored, micro_batch}).second;
    if (first) return diff;
    require(layer != stored, "a layer does not give to itself");
    const std::span<float> part = scratch_.at({scratch_all_.offset + used, static_cast<std::int64_t>(diff.size())});
    used += (static_cast<std::int64_t>(part.size()) + 15) / 16 * 16;
    ready.additions.push_back({diff, part});
    return part;
}

// Of the gradient that a `copy` or `send` has got: its input's is the same memory, or gets it added.
void Program::pass_on(ReadyStep& ready, int layer, int micro_batch) {
    const int input = part().network.layers[at(layer)].inputs.front();
    const int stored = tensors_->diff_stored_as(input);
    const std::span<float> diff = tensors_->layer(stored, micro_batch).diff;
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
        const std::span<const float> whole = tensors_->layer(input, compute.micro_batch).output;
        ready.before = [joint, own, whole, piece = made.output] { take(joint, own, whole, piece); };
        return;
    }
    std::int64_t used = 0;
    const std::span<float> piece = give(ready, compute.layer, input, compute.micro_batch, used);
    ready.before = [joint, own, whole = made.diff, piece] { take(joint, own, whole, piece); };
}

void Program::prepare(ReadyStep& ready, const Communicate& communicate) {
    if (communicate.bucket >= 0) return prepare_bucket(ready, communicate);
    if (communicate.kind != CollectiveKind::all_reduce) return prepare_pieces(ready, communicate);
    const LayerTensors own = tensors_->layer(communicate.layer, communicate.micro_batch);
    if (communicate.pass == Pass::forward) {
        ready.data = own.output;
    } else {
        ready.data = own.diff;
        pass_on(ready, communicate.layer, communicate.micro_batch);
    }
}

// all_gather joins the ranks' pieces, reduce_scatter adds the ranks' wholes and leaves each its piece; forward from the
// input's output to the layer's, backward from the layer's gradient to the input's.
void Program::prepare_pieces(ReadyStep& ready, const Communicate& communicate) {
    const Layer& layer = part().network.layers[at(communicate.layer)];
    const Joint joint = joint_of(std::get<Communication>(layer.op), micro_batch_size(schedule_));
    const bool forward = communicate.pass == Pass::forward, gathers = communicate.kind == CollectiveKind::all_gather;
    const LayerTensors own = tensors_->layer(communicate.layer, communicate.micro_batch);
    const int input = layer.inputs.front();
    const std::span<const float> from =
        forward ? std::span<const float>{tensors_->layer(input, communicate.micro_batch).output} : own.diff;
    std::vector<float>& pieces = joints_[at(communicate.layer)];
    pieces.resize(at(joint.parts * joint.outer * joint.inner));
    ready.data = pieces;
    const std::size_t size = pieces.size() / at(joint.parts);
    const auto place = [data = ready.data, size](std::int64_t part) { return data.subspan(at(part) * size, size); };
    const std::int64_t coordinate = coordinates_[at(communicate.axis)];
    if (gathers) {
        ready.before = [from, to = place(coordinate)] { std::ranges::copy(from, to.begin()); };
    } else {
        ready.before = [joint, from, place] {
            for (std::int64_t part = 0; part < joint.parts; ++part) take(joint, part, from, place(part));
        };
    }
    const std::span<float> to =
        forward ? own.output : room_for_gradient(ready, communicate.layer, communicate.micro_batch);
    if (gathers) {
        ready.after = [joint, data = ready.data, to] { join(joint, data, to); };
    } else {
        ready.after = [mine = place(coordinate), to] { std::ranges::copy(mine, to.begin()); };
    }
}

// The gradient of a Communication's input: where it lies, or, when another reader of that input has given to it, memory
// beside it, to be added.
std::span<float> Program::room_for_gradient(ReadyStep& ready, int layer, int micro_batch) {
    const int stored = tensors_->diff_stored_as(part().network.layers[at(layer)].inputs.front());
    const std::span<float> diff = tensors_->layer(stored, micro_batch).diff;
    if (diff.empty() || has_gradient_.insert({stored, micro_batch}).second) return diff;
    std::vector<float>& beside = beside_[at(layer)];
    beside.resize(diff.size());
    ready.additions.push_back({diff, beside});
    return beside;
}

void Program::prepare_bucket(ReadyStep& ready, const Communicate& communicate) {
    const BucketTensors& bucket = tensors_->bucket(communicate.bucket);
    ready.data = communicate.kind == CollectiveKind::all_gather ? bucket.weights : bucket.gradients;
    const auto sum = sums_.find(communicate.bucket);
    if (communicate.kind != CollectiveKind::reduce_scatter || sum == sums_.end()) return;
    const Range own = own_piece(communicate.bucket);
    const std::span<float> mine = ready.data.subspan(at(own.begin), at(own.end - own.begin));
    const std::span<float> so_far = sum->second;
    if (communicate.micro_batch > 0) ready.additions.push_back({so_far, mine});
    if (communicate.micro_batch == 0) ready.additions.push_back({so_far, mine, true});
    if (communicate.micro_batch + 1 == schedule_.micro_batches) ready.additions.push_back({mine, so_far, true});
}

void Program::prepare(ReadyStep& ready, const Send& send) {
    const LayerTensors own = tensors_->layer(send.layer, send.micro_batch);
    ready.data = movement(send.layer) == Movement::send ? own.output : own.diff;
}

void Program::prepare(ReadyStep& ready, const Recv& recv) {
    const LayerTensors own = tensors_->layer(recv.layer, recv.micro_batch);
    ready.data = movement(recv.layer) == Movement::receive ? own.output : own.diff;
    if (movement(recv.layer) == Movement::send) pass_on(ready, recv.layer, recv.micro_batch);
}

void Program::prepare(ReadyStep& ready, const Update& update, const Wish& wish) {
    const BucketTensors& bucket = tensors_->bucket(update.bucket);
    Range own{0, static_cast<std::int64_t>(bucket.weights.size())};
    Problem problem = update.problem;
    if (update.sharded >= 0) {
        own = own_piece(update.bucket);
        problem.op = update_op(schedule_.optimizer, own.end - own.begin, 1);
    }
    const kernels::PassChoices choices = kernels::choose_passes(problem.op, 1, DataType::f32, wish);
    ready.kernel = &kernel_of(problem, of(choices, Pass::update), wish.scratch_limit);
    const auto mine = [&](std::span<float> whole) { return whole.subspan(at(own.begin), at(own.end - own.begin)); };
    ready.buffers.weights = mine(bucket.weights);
    ready.buffers.diff_weights = mine(bucket.gradients);
    ready.buffers.momentum = mine(bucket.momentum);
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

void Program::finish(const ReadyStep& ready) {
    if (ready.after) ready.after();
    for (const Addition& addition : ready.additions) {
        if (addition.first) {
            std::ranges::copy(addition.part, addition.sum.begin());
            continue;
        }
        for (std::size_t i = 0; i < addition.sum.size(); ++i) addition.sum[i] += addition.part[i];
    }
}

void Program::compute(ReadyStep& ready, std::uint64_t seed, std::int64_t first_sample) {
    if (const auto* compute = std::get_if<Compute>(&ready.step->action)) {
        ready.buffers.seed = key(seed, layer_keys_[at(compute->layer)]);
        ready.buffers.first_sample = first_sample + compute->micro_batch * micro_batch_size(schedule_);
    }
    if (const auto* update = std::get_if<Update>(&ready.step->action)) {
        ready.buffers.update_count = ++updates_[update->bucket];
    }
    if (ready.before) ready.before();
    if (ready.kernel != nullptr) ready.kernel->run(ready.buffers);
    finish(ready);
    if (!ready.is_loss) return;
    for (const float loss : ready.buffers.dst) loss_ += loss;
}

void Program::compute_gradients(std::uint64_t seed, std::int64_t first_sample) {
    begin_step();
    for (ReadyStep& ready : steps_) {
        if (std::holds_alternative<Compute>(ready.step->action)) compute(ready, seed, first_sample);
    }
}

}  // namespace rehearse::run
