// SPDX-License-Identifier: Apache-2.0
#include "run/executor.hpp"

#include <algorithm>
#include <utility>

#include "core/error.hpp"

namespace rehearse::run {

Executor::Executor(const Schedule& schedule, Program& program, const kernels::Communicator& world, Probe probe,
                   ServerLinks* servers, bool graphs)
    : program_(program),
      graphs_(schedule, program, graphs),
      probe_(std::move(probe)),
      wires_(schedule, program, world, servers),
      times_(program.steps().size()),
      awaited_(times_.size()) {
    device_times_.starts.resize(program.device() == nullptr ? 0 : times_.size());
    device_times_.ends.resize(device_times_.starts.size());
    progress_.done.resize(times_.size());
    const std::span<ReadyStep> steps = program.steps();
    for (const ReadyStep& ready : steps) {
        for (const int before : ready.step->after) {
            const auto index = static_cast<std::size_t>(before);
            if (steps[index].step->stream != ready.step->stream) awaited_[index] = true;
        }
    }
    const Collective agreement{CollectiveKind::all_reduce, {.name = "doubling"}, {world.size(), world.size()}, 1};
    agreement_.rounds = {agreement, world.rank()};
    std::map<Stream, Lane> by_stream;
    for (const auto& [index, wire] : wires_.steps()) {
        Lane& lane = by_stream[steps[index].step->stream];
        lane.steps.push_back(index);
        lane.room.resize(std::max(lane.room.size(), wire.room));
    }
    for (auto& [stream, lane] : by_stream) lanes_.push_back(std::move(lane));
    if (program.scale().on() && program.overflows_apart()) agreement_.ranks.emplace(world.split(0, world.rank()));
    if (!lanes_.empty() || agreement_.ranks) thread_ = std::thread{[this] { communicate(); }};
}

Executor::~Executor() {
    {
        const std::lock_guard lock{mutex_};
        progress_.stop = true;
    }
    changed_.notify_all();
    if (thread_.joinable()) thread_.join();
}

void Executor::run(int iteration, std::uint64_t seed, std::int64_t first_sample) {
    program_.begin_step();
    {
        const std::scoped_lock both{messages_, mutex_};
        progress_.done.assign(progress_.done.size(), false);
        iteration_ = iteration;
        for (Lane& lane : lanes_) lane.next = 0;
        agreement_.reached = !agreement_.ranks;
    }
    unannounced_ = true;
    if (program_.device() != nullptr) {
        program_.device()->record(device_times_.begun);
        device_times_.begun_at = Clock::now();
    }
    const std::span<ReadyStep> steps = program_.steps();
    bool decided = !program_.scale().on();  // whether this step updates anything
    graphs_.begin_training_step();
    for (std::size_t i = 0; i < steps.size(); ++i) {
        if (steps[i].step->stream != Stream::compute) continue;
        const bool decides = !decided && std::holds_alternative<Update>(steps[i].step->action);
        for (const int before : steps[i].step->after) wait_for(static_cast<std::size_t>(before));
        announce();
        graphs_.begin(i, decides);
        time(i, [&] {
            if (decides) {
                program_.scale().skip_updates(agreed(program_.has_overflowed()));
                decided = true;
            }
            if (probe_) probe_(iteration, *steps[i].step);
            program_.compute(steps[i], seed, first_sample, graphs_.given());
        });
    }
    graphs_.flush();
    if (!decided) program_.scale().skip_updates(agreed(false));  // without weights it has a voice none the less
    communicate_until([&] { return all_over(); });
    program_.end_step();
    read_device_clock();
}

// When each step that was given to the device was computed there.
void Executor::read_device_clock() {
    kernels::Device* const device = program_.device();
    for (std::size_t i = 0; i < device_times_.ends.size(); ++i) {
        if (device_times_.ends[i] == nullptr) continue;
        const auto after = [&](const kernels::Device::Event& event) {
            const std::chrono::duration<double> seconds{device->seconds(device_times_.begun, event)};
            return device_times_.begun_at + std::chrono::duration_cast<Clock::duration>(seconds);
        };
        times_[i] = {after(device_times_.starts[i]), after(device_times_.ends[i])};
    }
}

// A step of the compute stream has been given to the device: for who works on messages.
void Executor::wait_for_device(std::size_t index) {
    if (program_.device() != nullptr && device_times_.ends[index] != nullptr)
        program_.device()->wait(device_times_.ends[index]);
}

void Executor::sum_kept_gradients() {
    for (const auto& [index, wire] : wires_.steps()) {
        ReadyStep& ready = program_.steps()[index];
        const auto* sum = std::get_if<Communicate>(&ready.step->action);
        if (sum == nullptr || !sum->of_bucket() || sum->kind == CollectiveKind::all_gather) continue;
        if (ready.before) ready.before();
        std::vector<std::byte> room(wire.room);
        wire.group->run(wire.rounds, operand_of(ready.data, room));
        run::finish(ready);
    }
}

// The compute stream waits, and goes on with messages meanwhile.
template <typename Done>
void Executor::communicate_until(const Done& done) {
    const std::lock_guard messages{messages_};
    for (kernels::Idle pause = kernels::attentive();;) {
        {
            const std::lock_guard lock{mutex_};
            if (progress_.failure) std::rethrow_exception(progress_.failure);
            if (done()) break;
        }
        if (look())
            pause = kernels::attentive();
        else
            pause();
    }
    unannounced_ = anything_under_way();
}

// The compute stream waits; it is done beside what is under way.
bool Executor::agreed(bool overflow) {
    if (!agreement_.ranks) return overflow;
    {
        const std::lock_guard lock{mutex_};
        agreement_.flag = overflow ? 1 : 0;
        agreement_.state = Agreement::Flag::asked;
    }
    communicate_until([&] { return agreement_.state == Agreement::Flag::known; });
    agreement_.state = Agreement::Flag::none;
    return agreement_.flag > 0;
}

template <typename Work>
void Executor::time(std::size_t index, const Work& work) {
    kernels::Device* const device = program_.device();
    const bool records = device != nullptr && !graphs_.given();  // else the graph does
    if (records) device->record(device_times_.starts[index]);
    times_[index].start = Clock::now();
    work();
    times_[index].end = Clock::now();
    if (records) device->record(device_times_.ends[index]);
    if (!awaited_[index]) return;
    graphs_.flush();
    finish(index);
    unannounced_ = true;
}

// For the compute stream.
void Executor::wait_for(std::size_t index) {
    if (program_.steps()[index].step->stream == Stream::compute) return;  // done: it is earlier on this very thread
    graphs_.flush();
    {
        const std::lock_guard lock{mutex_};
        if (progress_.done[index]) return;
    }
    communicate_until([&] { return progress_.done[index]; });
}

// Of the compute stream, which goes on with what may take long: messages that wait for what it did begin beside it.
void Executor::announce() {
    if (!std::exchange(unannounced_, false) || !thread_.joinable()) return;
    {
        const std::lock_guard lock{mutex_};
        progress_.news = true;
        if (progress_.failure) std::rethrow_exception(progress_.failure);
    }
    changed_.notify_all();
}

void Executor::finish(std::size_t index) {
    const std::lock_guard lock{mutex_};
    progress_.done[index] = true;
}

void Executor::fail(std::exception_ptr why) {
    const std::lock_guard lock{mutex_};
    if (!progress_.failure) progress_.failure = std::move(why);
}

std::vector<double> Executor::bytes_sent() const {
    std::vector<double> bytes(times_.size());
    for (const auto& [index, wire] : wires_.steps()) {
        const Bytes unit = size_of(program_.steps()[index].data.type());
        for (const auto& round : wire.rounds.rounds) {
            for (const auto& send : round.sends) bytes[index] += (static_cast<double>(send.count) * unit).value;
        }
    }
    return bytes;
}

}  // namespace rehearse::run
