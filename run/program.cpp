// SPDX-License-Identifier: Apache-2.0
#include "run/program.hpp"

#include <algorithm>
#include <utility>

#include "core/error.hpp"
#include "core/precision.hpp"
#include "core/weight_versions.hpp"

namespace rehearse::run {

namespace {

std::vector<std::unique_ptr<Method>> make_methods(RankContext& rank) {
    std::vector<std::unique_ptr<Method>> made;
    for (const MethodRow* row : methods_of(rank.schedule)) made.push_back(row->make(rank));
    return made;
}

}  // namespace

Program::Program(const Schedule& schedule, RankIndex rank, const KernelSelection& selection, std::uint64_t seed,
                 const Hyperparameters& hyperparameters)
    : rank_(schedule, rank, selection, seed, hyperparameters),
      losses_(rank_),
      methods_(make_methods(rank_)),
      gradients_(rank_),
      layers_(rank_, gradients_, loss_batch()),
      messages_(rank_, gradients_),
      ring_(rank_, gradients_),
      updates_(rank_) {
    for (const Step& step : rank_.rank_class.steps) {
        ReadyStep ready;
        ready.step = &step;
        prepare(ready);
        steps_.push_back(std::move(ready));
    }
    for (const auto& method : methods_) method->complete(steps_);
}

void Program::prepare(ReadyStep& ready) {
    const Action& action = ready.step->action;
    if (const auto* compute = std::get_if<Compute>(&action)) {
        return ring_.has(compute->layer) ? ring_.prepare(ready, *compute) : layers_.prepare(ready, *compute);
    }
    if (const auto* update = std::get_if<Update>(&action)) return updates_.prepare(ready, *update);
    if (const auto* send = std::get_if<Send>(&action)) return messages_.prepare(ready, *send);
    if (const auto* recv = std::get_if<Recv>(&action)) return messages_.prepare(ready, *recv);
    const auto* const together = std::get_if<Communicate>(&action);
    if (together != nullptr && !together->of_bucket()) {
        return ring_.has(together->layer()) ? ring_.prepare(ready, *together) : messages_.prepare(ready, *together);
    }
    const bool known = std::ranges::any_of(methods_, [&](const auto& method) { return method->prepare(ready); });
    require(known, "a step is of a method that the schedule uses");
}

// Where each micro-batch updates the weights its losses are means over those of all ranks alone.
std::int64_t Program::loss_batch() const {
    const Schedule& schedule = rank_.schedule;
    const bool each_time = std::ranges::any_of(schedule.classes, updates_each_micro_batch);
    std::int64_t batch = global_batch(schedule) / (each_time ? schedule.micro_batches : 1);
    for (const auto& method : methods_) batch = method->loss_batch(batch);
    return batch;
}

void Program::begin_step() {
    losses_.begin_step();
    rank_.tensors.spread_inputs(rank_.device);
    for (const auto& method : methods_) method->begin_step();
}

void Program::compute(ReadyStep& ready, std::uint64_t seed, std::int64_t first_sample, bool given) {
    if (const auto* compute = std::get_if<Compute>(&ready.step->action)) {
        layers_.begin(ready, *compute, seed, first_sample);
    } else if (const auto* update = std::get_if<Update>(&ready.step->action)) {
        if (rank_.scale.skips() || !updates()) return;
        updates_.begin(ready, *update);
    }
    if (given) return;
    kernels::Device* const device = rank_.device;
    if (ready.before && ready.host_works && device != nullptr) device->finish();
    if (ready.before) ready.before();
    if (ready.kernel != nullptr) ready.kernel->run(ready.buffers);
    if (device == nullptr) {
        finish(ready);
    } else {
        finish(ready, *device);
    }
    if (!ready.is_loss || counts_loss_at_end()) return;
    if (device != nullptr) device->finish();
    losses_.count(ready);
}

// Of the only micro-batch it is still there when all is computed: no need to wait in the middle.
bool Program::counts_loss_at_end() const { return rank_.device != nullptr && rank_.schedule.micro_batches == 1; }

void Program::end_step() {
    if (rank_.device == nullptr) return;
    rank_.device->finish();
    for (const ReadyStep& ready : steps_) {
        if (ready.is_loss && counts_loss_at_end()) losses_.count(ready);
    }
}

void Program::take_messages() {
    for (const auto& method : methods_) method->end_step();
}

void Program::compute_gradients(std::uint64_t seed, std::int64_t first_sample) {
    begin_step();
    for (ReadyStep& ready : steps_) {
        if (std::holds_alternative<Compute>(ready.step->action)) compute(ready, seed, first_sample);
    }
    end_step();
}

bool Program::updates() const {
    return std::ranges::all_of(methods_, [](const auto& method) { return method->updates(); });
}

void Program::write_down(SentWords& sent) {
    for (const auto& method : methods_) method->write_down(sent);
}

bool Program::has_overflowed() const { return updates() && !all_finite(rank_.tensors.applied(), rank_.device); }

ProgramState Program::state() const {
    ProgramState state{.loss_scale = rank_.scale.kept(),
                       .scale_found = rank_.scale.found(),
                       .good_steps = rank_.scale.good_steps(),
                       .updates = updates_.count()};
    for (const auto& method : methods_) method->save(state);
    return state;
}

void Program::set_state(const ProgramState& state) {
    rank_.scale.restore(state.scale_found, state.loss_scale, static_cast<int>(state.good_steps));
    updates_.set_count(state.updates);
    for (const auto& method : methods_) method->restore(state);
}

void Program::visit_own_state(const UseNumbers& use) {
    require(rank_.schedule.precision == Precision::fp32 && rank_.device == nullptr, "such ranks train in f32");
    for (std::size_t b = 0; b < part().buckets.size(); ++b) {
        const BucketTensors& bucket = rank_.tensors.bucket(static_cast<int>(b));
        use(bucket.weights);
        use(bucket.momentum);
        if (!bucket.second_moment.empty()) use(bucket.second_moment);
        std::int64_t& updates = updates_.count(static_cast<int>(b));
        auto count = static_cast<float>(updates);  // exact to 2^24
        use({&count, 1});
        updates = static_cast<std::int64_t>(count);
    }
    for (std::size_t i = 0; i < part().network.layers.size(); ++i) use(rank_.tensors.layer(static_cast<int>(i)).state);
    for (const auto& method : methods_) method->visit_state(use);
}

}  // namespace rehearse::run
