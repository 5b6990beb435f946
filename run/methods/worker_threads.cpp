// SPDX-License-Identifier: Apache-2.0
#include "run/methods/worker_threads.hpp"

#include <algorithm>
#include <chrono>
#include <set>

#include "core/error.hpp"
#include "core/index.hpp"
#include "core/methods/averaging.hpp"
#include "kernels/threads.hpp"
#include "run/clock.hpp"

namespace rehearse::run {

namespace {

/// What one learner does with one part of the batch, and its update.
Schedule of_one_part(const Schedule& schedule) {
    require(schedule.classes.size() == 1 && schedule.methods.get<Averaging>().period > 0,
            "ranks with whole models of their own");
    Schedule part = schedule;
    part.mesh = {{{"data", 1}}};
    part.batch_per_rank = micro_batch_size(schedule);
    part.micro_batches = 1;
    part.methods.edit<Averaging>() = {};
    RankClass& all = part.classes.front();
    all.steps.clear();
    all.slots = 1;
    for (Bucket& bucket : all.part.buckets) bucket.axis = -1;
    std::set<int> updated;
    for (const Step& step : schedule.classes.front().steps) {
        const auto* compute = std::get_if<Compute>(&step.action);
        const auto* update = std::get_if<Update>(&step.action);
        const auto* precondition = std::get_if<Precondition>(&step.action);
        const bool first = (update != nullptr && updated.insert(update->bucket).second) ||
                           (precondition != nullptr && precondition->micro_batch == 0);
        if (!first && (compute == nullptr || compute->micro_batch > 0)) continue;
        all.steps.push_back({step.name, step.stream, step.action, {}});
    }
    return part;
}

int threads_of(const Schedule& schedule, const Options& options) {
    return options.unlocked > 0 ? options.unlocked : schedule.methods.get<Averaging>().learners;
}

}  // namespace

void add_unlocked(std::span<float> shared, std::span<const float> by, float factor) {
    for (std::size_t i = 0; i < shared.size(); ++i) {
        const std::atomic_ref<float> element{shared[i]};
        element.store(element.load(std::memory_order_relaxed) + factor * by[i], std::memory_order_relaxed);
    }
}

void read_unlocked(std::span<float> shared, std::span<float> to) {
    for (std::size_t i = 0; i < shared.size(); ++i) {
        to[i] = std::atomic_ref<float>{shared[i]}.load(std::memory_order_relaxed);
    }
}

WorkerThreads::WorkerThreads(const Schedule& schedule, const Options& options, const KernelSelection& selection,
                             const Hyperparameters& hyperparameters, std::uint64_t weights_seed)
    : options_(options),
      one_part_(of_one_part(schedule)),
      learners_(at(threads_of(schedule, options))),
      parts_(at(schedule.micro_batches)),
      taken_(parts_.size()),
      learning_rate_(hyperparameters.learning_rate),
      gate_(static_cast<std::ptrdiff_t>(learners_.size()) + 1) {
    for (std::size_t i = 0; i < learners_.size(); ++i) {
        Learner& learner = learners_[i];
        learner.program = std::make_unique<Program>(one_part_, RankIndex{0}, selection, weights_seed, hyperparameters);
        learner.share = schedule.methods.get<Averaging>().elastic;
        if (i < options.learner_paces.size()) learner.pace = options.learner_paces[i];
    }
    if (options.unlocked > 0) model_ = floats_of(learners_.front().program->tensors().weights());
    for (Batch& part : parts_) {
        Tensors& tensors = learners_.front().program->tensors();
        part.input.resize(tensors.input().size());
        part.ids.resize(tensors.indices().size());
        part.labels.resize(tensors.labels().size());
    }
    const int kernel_threads = kernels::threads_now();
    for (std::size_t i = 0; i < learners_.size(); ++i) {
        threads_.emplace_back([this, i, kernel_threads] {
            const kernels::ThreadsOfThis of_kernels{kernel_threads};
            work(i);
        });
    }
}

WorkerThreads::~WorkerThreads() {
    if (running_) gate_.arrive_and_wait();
    stop_ = true;
    gate_.arrive_and_wait();
}

void WorkerThreads::begin(std::uint64_t dropout_seed, std::int64_t first_sample) {
    task_ = {dropout_seed, first_sample};
    next_ = 0;
    for (Learner& learner : learners_) {
        learner.loss = 0;
        learner.pulled = learner.apart.empty();
        learner.has_inverses = false;
        if (!model_.empty()) learner.added.assign(model_.size(), 0);
    }
    running_ = true;
    gate_.arrive_and_wait();
}

void WorkerThreads::end() {
    gate_.arrive_and_wait();
    running_ = false;
    if (failure_) std::rethrow_exception(failure_);
}

void WorkerThreads::work(std::size_t learner) {
    for (;;) {
        gate_.arrive_and_wait();
        if (stop_) return;
        try {
            take_parts(learner);
        } catch (...) {
            const std::lock_guard lock{mutex_};
            failure_ = std::current_exception();
        }
        gate_.arrive_and_wait();
    }
}

void WorkerThreads::take_parts(std::size_t learner) {
    Learner& own = learners_[learner];
    const auto all = static_cast<int>(parts_.size());
    const auto take = [&](int part) {
        const double begin = now();
        taken_[at(part)] = static_cast<int>(learner);
        train(own, part);
        const std::chrono::duration<double> longer{(own.pace - 1) * (now() - begin)};
        if (longer.count() > 0) std::this_thread::sleep_for(longer);
    };
    if (options_.first_idle) {
        for (int part = next_++; part < all; part = next_++) take(part);
    } else {
        const auto count = static_cast<int>(learners_.size()), index = static_cast<int>(learner);
        for (int part = index * all / count; part < (index + 1) * all / count; ++part) take(part);
    }
    own.end = now();
}

void WorkerThreads::train(Learner& learner, int part) {
    Program& program = *learner.program;
    const Batch& batch = parts_[at(part)];
    std::ranges::copy(batch.input, program.tensors().input().begin());
    std::ranges::copy(batch.ids, program.tensors().indices().begin());
    std::ranges::copy(batch.labels, program.tensors().labels().begin());
    if (!model_.empty()) read_unlocked(model_, program.tensors().weights());
    program.begin_step();
    for (ReadyStep& ready : program.steps()) {
        const auto* const precondition = std::get_if<Precondition>(&ready.step->action);
        const bool known =
            learner.has_inverses && precondition != nullptr && precondition->work != Precondition::Work::multiply;
        if (known || std::holds_alternative<Update>(ready.step->action)) continue;
        program.compute(ready, task_.dropout_seed, task_.first_sample + part * program.samples());
    }
    program.end_step();
    learner.has_inverses = true;
    learner.loss += program.losses().sum();
    update(learner);
}

// Of its own model, which after its first update of a step gives up a share of how far it was from the average one.
void WorkerThreads::update(Learner& learner) {
    Program& program = *learner.program;
    if (!model_.empty()) {
        const std::span<const float> gradients = program.tensors().applied();
        add_unlocked(model_, gradients, -learning_rate_);
        for (std::size_t i = 0; i < gradients.size(); ++i) learner.added[i] -= double{learning_rate_} * gradients[i];
        return;
    }
    for (ReadyStep& ready : program.steps()) {
        if (std::holds_alternative<Update>(ready.step->action)) program.compute(ready, 0, 0);
    }
    if (learner.pulled) return;
    const std::span<float> weights = program.tensors().weights();
    for (std::size_t i = 0; i < weights.size(); ++i) weights[i] -= static_cast<float>(learner.share) * learner.apart[i];
    learner.pulled = true;
}

}  // namespace rehearse::run
