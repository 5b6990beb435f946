// SPDX-License-Identifier: Apache-2.0
#include "run/program.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/error.hpp"
#include "run/random.hpp"

namespace rehearse::run {

namespace {

std::size_t at(std::int64_t index) { return static_cast<std::size_t>(index); }

// Room for the gradients of all inputs of any one layer.
std::int64_t largest_inputs(const Schedule& schedule) {
    std::int64_t largest = 0;
    for (const Layer& layer : schedule.network.layers) {
        std::int64_t sum = 0;
        for (const Shape& shape : input_shapes(layer.op)) sum += elements(shape) * schedule.batch_per_rank;
        largest = std::max(largest, sum);
    }
    return largest;
}

void check_compute(const Schedule& schedule, const Step& step, const Compute& compute) {
    if (compute.problem.type != DataType::f32) {
        throw InputError(fmt::format("step '{}' computes in {}: run computes in f32 in this version (--precision fp32)",
                                     step.name, to_string(compute.problem.type)));
    }
    if (compute.micro_batch != 0 || compute.problem.batch != schedule.batch_per_rank) {
        throw InputError(
            fmt::format("step '{}' is of a micro-batch: run does not execute these in this version", step.name));
    }
}

[[noreturn]] void refuse(const Step& step, std::string_view kind) {
    throw InputError(fmt::format("step '{}' {}: run does not execute that in this version", step.name, kind));
}

}  // namespace

Program::Program(const Schedule& schedule, const RankClass& rank_class, const Wish& wish, std::uint64_t seed,
                 const Hyperparameters& hyperparameters)
    : schedule_(schedule), hyperparameters_(hyperparameters), has_gradient_(schedule.network.layers.size()) {
    choose_backends(wish);
    std::vector<const kernels::Backend*> backends;  // whoever runs forward says what is kept for backward
    for (const kernels::PassChoices& choices : choices_) backends.push_back(of(choices, Pass::forward).backend);
    tensors_ = std::make_unique<Tensors>(schedule, backends, seed);
    scratch_.reserve(largest_inputs(schedule));
    scratch_.allocate();
    for (const Step& step : rank_class.steps) {
        ReadyStep ready;
        ready.step = &step;
        if (const auto* compute = std::get_if<Compute>(&step.action)) {
            check_compute(schedule, step, *compute);
            prepare(ready, *compute, wish.scratch_limit);
        } else if (const auto* update = std::get_if<Update>(&step.action)) {
            prepare(ready, *update, wish);
        } else if (const auto* reduce = std::get_if<AllReduceBucket>(&step.action)) {
            if (reduce->type != DataType::f32) refuse(step, fmt::format("sends {}", to_string(reduce->type)));
        } else if (std::holds_alternative<Load>(step.action)) {
            refuse(step, "reads from storage");
        } else {
            refuse(step, "sends activations");
        }
        steps_.push_back(std::move(ready));
    }
}

void Program::choose_backends(const Wish& wish) {
    const auto& layers = schedule_.network.layers;
    for (std::size_t i = 0; i < layers.size(); ++i) {
        const bool computes = has_pass(layers[i].op, Pass::forward);
        choices_.push_back(computes
                               ? kernels::choose_passes(layers[i].op, schedule_.batch_per_rank, DataType::f32, wish)
                               : kernels::PassChoices{});
        if (std::holds_alternative<SoftmaxLoss>(layers[i].op)) losses_.push_back(static_cast<int>(i));
        if (i > 0 && std::holds_alternative<Input>(layers[i].op)) {
            throw InputError(fmt::format("network '{}' has a second input, '{}': run feeds one", schedule_.network.name,
                                         layers[i].name));
        }
    }
    if (losses_.empty()) {
        throw InputError(
            fmt::format("network '{}' does not end in a loss: there is nothing to train for", schedule_.network.name));
    }
    require(std::holds_alternative<Input>(layers.front().op), "layer 0 is the input");
}

// Layers of the same problem share a kernel: what differs between them lies in the buffers.
kernels::Kernel& Program::kernel_of(const Problem& problem, const kernels::Choice& choice, Bytes scratch_limit) {
    auto& kernel =
        kernels_[fmt::format("{}/{}/{}", to_string(problem), kernels::full_name(*choice.backend), choice.threads)];
    if (kernel == nullptr) kernel = kernels::prepare(choice, problem, scratch_limit);
    return *kernel;
}

void Program::prepare(ReadyStep& ready, const Compute& compute, Bytes scratch_limit) {
    const Layer& layer = schedule_.network.layers[at(compute.layer)];
    const LayerTensors& own = tensors_->layer(compute.layer);
    kernels::Buffers& buffers = ready.buffers;
    ready.kernel = &kernel_of(compute.problem, of(choices_[at(compute.layer)], compute.problem.pass), scratch_limit);
    for (const int input : layer.inputs) buffers.src.emplace_back(tensors_->layer(input).output);
    buffers.weights = own.weights;
    buffers.workspace = own.workspace;
    buffers.state = own.state;
    buffers.labels = tensors_->labels();
    buffers.loss_batch = global_batch(schedule_);
    if (compute.problem.pass == Pass::forward) {
        buffers.dst = own.output;
        return;
    }
    buffers.dst_in = own.output;
    buffers.diff_dst = own.diff;
    buffers.diff_weights = own.gradients;
    if (compute.problem.pass == Pass::backward_data) add_gradients_of_inputs(ready, compute);
}

// The first layer that reads an output, in the order of the backward pass, writes the gradient of that output; each
// later one writes its part beside it, to be added.
void Program::add_gradients_of_inputs(ReadyStep& ready, const Compute& compute) {
    std::int64_t used = 0;
    for (const int input : schedule_.network.layers[at(compute.layer)].inputs) {
        const int stored = tensors_->stored_as(input);
        const std::span<float> diff = tensors_->layer(stored).diff;
        if (diff.empty() || !has_gradient_[at(stored)]) {
            ready.buffers.diff_src.push_back(diff);
            has_gradient_[at(stored)] = true;
            continue;
        }
        const std::span<float> part = scratch_.at({used, static_cast<std::int64_t>(diff.size())});
        used += static_cast<std::int64_t>(diff.size());
        ready.buffers.diff_src.push_back(part);
        ready.additions.push_back({diff, part});
    }
}

void Program::prepare(ReadyStep& ready, const Update& update, const Wish& wish) {
    const BucketTensors& bucket = tensors_->bucket(update.bucket);
    const kernels::PassChoices choices = kernels::choose_passes(update.problem.op, 1, DataType::f32, wish);
    ready.kernel = &kernel_of(update.problem, of(choices, Pass::update), wish.scratch_limit);
    ready.buffers.weights = bucket.weights;
    ready.buffers.diff_weights = bucket.gradients;
    ready.buffers.momentum = bucket.momentum;
    ready.buffers.learning_rate = hyperparameters_.learning_rate;
    ready.buffers.momentum_factor = hyperparameters_.momentum;
    ready.buffers.weight_decay = hyperparameters_.weight_decay;
}

std::span<float> Program::input() { return tensors_->layer(0).output; }

double Program::loss() const {
    double sum = 0;
    for (const int layer : losses_) {
        for (const float loss : tensors_->layer(layer).output) sum += loss;
    }
    return sum;
}

void Program::compute(ReadyStep& ready, std::uint64_t seed, std::int64_t first_sample) {
    if (const auto* compute = std::get_if<Compute>(&ready.step->action)) {
        ready.buffers.seed = key(seed, static_cast<std::uint64_t>(compute->layer));
        ready.buffers.first_sample = first_sample;
    }
    ready.kernel->run(ready.buffers);
    for (const Addition& addition : ready.additions) {
        for (std::size_t i = 0; i < addition.sum.size(); ++i) addition.sum[i] += addition.part[i];
    }
}

void Program::compute_gradients(std::uint64_t seed, std::int64_t first_sample) {
    for (ReadyStep& ready : steps_) {
        if (std::holds_alternative<Compute>(ready.step->action)) compute(ready, seed, first_sample);
    }
}

}  // namespace rehearse::run
