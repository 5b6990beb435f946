// SPDX-License-Identifier: Apache-2.0
#include "run/program.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "core/error.hpp"
#include "core/weight_versions.hpp"
#include "kernels/convert.hpp"
#include "run/pieces.hpp"
#include "run/random.hpp"

namespace rehearse::run {

namespace {

void check_compute(const Schedule& schedule, const RankClass& rank_class, const Compute& compute) {
    require(compute.problem.type == compute_type(schedule.precision, compute.problem.op),
            "types as precision.hpp says");
    require(compute.problem.batch == micro_batch_size(schedule, rank_class), "a step computes one micro-batch");
}

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
            check_compute(schedule, rank_class_, *compute);
            prepare(ready, *compute, wish.scratch_limit);
            keep_version(ready, compute->micro_batch);
        } else if (const auto* update = std::get_if<Update>(&step.action)) {
            prepare(ready, *update, wish);
        } else if (const auto* precondition = std::get_if<Precondition>(&step.action)) {
            prepare(ready, *precondition, wish);
        } else if (const auto* communicate = std::get_if<Communicate>(&step.action)) {
            prepare(ready, *communicate);
        } else if (const auto* send = std::get_if<Send>(&step.action)) {
            prepare(ready, *send);
        } else if (const auto* recv = std::get_if<Recv>(&step.action)) {
            prepare(ready, *recv);
        } else if (const auto* trade = std::get_if<Trade>(&step.action)) {
            prepare(ready, *trade);
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
        if (action == nullptr || action->kind != CollectiveKind::reduce_scatter || !action->of_bucket()) continue;
        if (action->micro_batch + 1 == schedule_.micro_batches) continue;
        const Range own = own_piece(action->bucket());
        sums_[action->bucket()].resize(tensors_->gradients().first(at(own.end - own.begin)).size_bytes());
        const std::vector<int>& layers = part().buckets[at(action->bucket())].layers;
        summed_each_time_.insert(layers.begin(), layers.end());
    }
}

// Room for the gradients of all inputs, and of the weights, of any one layer.
void Program::reserve_scratch() {
    std::int64_t largest = 0;
    for (const Layer& layer : part().network.layers) {
        const bool as_made = compute_type(schedule_.precision) == wire_type(schedule_.precision);
        std::int64_t sum = (as_made ? 1 : 2) * (weights_read(layer.op) + 16);
        for (const Shape& shape : input_shapes(layer.op))
            sum += elements(shape) * micro_batch_size(schedule_, rank_class_) + 16;
        largest = std::max(largest, sum);
    }
    scratch_all_ = scratch_.reserve(largest);
    std::int64_t logits = 0, unscaled = 0;
    if (schedule_.precision != Precision::fp32) {
        for (const Layer& layer : part().network.layers) {
            if (!is_loss(layer.op)) continue;
            logits =
                std::max(logits, elements(input_shapes(layer.op).front()) * micro_batch_size(schedule_, rank_class_));
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
    if (!ready.step->recomputed) buffers.state = own.state;  // the statistics of a batch count once
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
    ready.host_works = device_ == nullptr;
    ready.before = [this, stored, logits] {
        if (device_ != nullptr) return device_->copy(stored, logits);
        kernels::convert(stored, logits);
    };
    if (buffers.diff_src.empty() || buffers.diff_src.front().empty()) return;
    const kernels::View gradient = buffers.diff_src.front();
    const std::span<float> made = logit_gradients_.first(stored.size());
    buffers.diff_src.front() = made;
    ready.after = [this, made, gradient] {
        if (device_ != nullptr) return device_->scale(made, gradient, scale_);
        for (float& value : made) value *= scale_;
        kernels::convert(made, gradient);
    };
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
    const bool first = std::ranges::none_of(steps_, [&](const ReadyStep& other) {
        const auto* before = std::get_if<Update>(&other.step->action);
        return before != nullptr && before->bucket == update.bucket;
    });
    if (first && averages_.contains(update.bucket)) ready.after = [this, b = update.bucket] { pull_together(b); };
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

void Program::compute(ReadyStep& ready, std::uint64_t seed, std::int64_t first_sample) {
    if (const auto* compute = std::get_if<Compute>(&ready.step->action)) {
        ready.buffers.seed = key(seed, layer_keys_[at(compute->layer)]);
        ready.buffers.first_sample = first_sample + compute->micro_batch * micro_batch_size(schedule_, rank_class_);
    }
    if (const auto* update = std::get_if<Update>(&ready.step->action)) {
        if (skips_ || !applies()) return;
        ready.buffers.update_count = updates_[update->bucket]++ + 1;
        if (scales()) unscale(ready);
    }
    if (ready.before && ready.host_works) wait_for_device();
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
    if (ready.after && ready.host_works) wait_for_device();
    if (ready.after) ready.after();
    for (const Addition& addition : ready.additions) {
        if (addition.first) {
            device_->copy(addition.part, addition.sum);
        } else {
            device_->add(addition.sum, addition.part);
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
