// SPDX-License-Identifier: Apache-2.0
#include "run/executor.hpp"

#include "core/error.hpp"
#include "run/placement.hpp"

namespace rehearse::run {

namespace {

struct Stopped {};  // the other thread failed: not an error of its own

}  // namespace

Executor::Executor(const Schedule& schedule, Program& program, const kernels::Communicator& world, Probe probe)
    : program_(program),
      probe_(std::move(probe)),
      times_(program.steps().size()),
      awaited_(program.steps().size()),
      done_(program.steps().size()) {
    const std::span<ReadyStep> steps = program.steps();
    for (const ReadyStep& ready : steps) {
        for (const int before : ready.step->after) {
            const auto index = static_cast<std::size_t>(before);
            if (steps[index].step->stream != ready.step->stream) awaited_[index] = true;
        }
    }
    make_sums(schedule, world);
    if (!sums_.empty()) thread_ = std::thread{[this] { communicate(); }};
}

Executor::~Executor() {
    {
        const std::lock_guard lock{mutex_};
        stop_ = true;
        stopping_ = true;
    }
    changed_.notify_all();
    if (thread_.joinable()) thread_.join();
}

void Executor::make_sums(const Schedule& schedule, const kernels::Communicator& world) {
    const Placement placement{world};
    const std::span<ReadyStep> steps = program_.steps();
    for (std::size_t i = 0; i < steps.size(); ++i) {
        const auto* reduce = std::get_if<AllReduceBucket>(&steps[i].step->action);
        if (reduce == nullptr) continue;
        const std::vector<std::int64_t> ranks = group_of(schedule.mesh, reduce->axis, world.rank());
        auto group = groups_.find(reduce->axis);
        if (group == groups_.end()) {
            group = groups_.emplace(reduce->axis, world.split(ranks.front(), world.rank())).first;
            group->second.connect();
        }
        const Collective collective =
            all_reduce(reduce->algorithm, placement.group(ranks, reduce->algorithm), reduce->elements);
        sums_.emplace(i, Sum{&group->second,
                             {collective, group->second.rank()},
                             program_.tensors().bucket(reduce->bucket).gradients});
    }
}

void Executor::run(int iteration, std::uint64_t seed, std::int64_t first_sample) {
    {
        const std::lock_guard lock{mutex_};
        done_.assign(done_.size(), false);
        iteration_ = iteration;
    }
    changed_.notify_all();
    const std::span<ReadyStep> steps = program_.steps();
    for (std::size_t i = 0; i < steps.size(); ++i) {
        if (steps[i].step->stream != Stream::compute) continue;
        for (const int before : steps[i].step->after) wait_for(static_cast<std::size_t>(before), Stream::compute);
        time(i, [&] {
            if (probe_) probe_(iteration, *steps[i].step);
            program_.compute(steps[i], seed, first_sample);
        });
    }
    if (!thread_.joinable()) return;
    compute_is_idle_ = true;
    std::unique_lock lock{mutex_};
    changed_.wait(lock, [&] { return communicated_ == iteration || failure_; });
    compute_is_idle_ = false;
    if (failure_) std::rethrow_exception(failure_);
}

std::vector<double> Executor::bytes_sent() const {
    std::vector<double> bytes(times_.size());
    for (const auto& [index, sum] : sums_) {
        for (const auto& round : sum.rounds.rounds) {
            for (const auto& part : round.sends) bytes[index] += static_cast<double>(part.count) * sizeof(float);
        }
    }
    return bytes;
}

void Executor::communicate() {
    try {
        for (;;) {
            {
                std::unique_lock lock{mutex_};
                changed_.wait(lock, [&] { return stop_ || iteration_ > communicated_; });
                if (stop_) return;
            }
            communicate_once();
        }
    } catch (const Stopped&) {
    } catch (...) {
        fail(std::current_exception());
    }
}

void Executor::communicate_once() {
    const std::span<ReadyStep> steps = program_.steps();
    const kernels::Idle idle = [this] { give_way(); };
    for (auto& [index, sum] : sums_) {
        const Step& step = *steps[index].step;
        for (const int before : step.after) wait_for(static_cast<std::size_t>(before), Stream::communication);
        time(index, [&, &sum = sum] {
            if (probe_) probe_(iteration_, step);
            sum.group->all_reduce(sum.rounds, sum.data, idle);
        });
    }
    {
        const std::lock_guard lock{mutex_};
        communicated_ = iteration_;
    }
    changed_.notify_all();
}

template <typename Work>
void Executor::time(std::size_t index, const Work& work) {
    times_[index].start = Clock::now();
    work();
    times_[index].end = Clock::now();
    if (awaited_[index]) finish(index);
}

void Executor::wait_for(std::size_t index, Stream stream) {
    if (program_.steps()[index].step->stream == stream) return;  // done: it is earlier on this very thread
    std::unique_lock lock{mutex_};
    if (stream == Stream::compute) compute_is_idle_ = true;
    changed_.wait(lock, [&] { return done_[index] || failure_ || stop_; });
    if (stream == Stream::compute) compute_is_idle_ = false;
    if (failure_) std::rethrow_exception(failure_);
    if (stop_) throw Stopped{};
}

void Executor::finish(std::size_t index) {
    {
        const std::lock_guard lock{mutex_};
        done_[index] = true;
    }
    changed_.notify_all();
}

void Executor::fail(std::exception_ptr why) {
    {
        const std::lock_guard lock{mutex_};
        if (!failure_) failure_ = std::move(why);
    }
    changed_.notify_all();
}

void Executor::give_way() const {
    if (stopping_) throw Stopped{};
    (compute_is_idle_ ? attentive_ : considerate_)();
}

}  // namespace rehearse::run
