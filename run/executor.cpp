// SPDX-License-Identifier: Apache-2.0
#include "run/executor.hpp"

#include <algorithm>
#include <set>

#include "core/error.hpp"
#include "run/placement.hpp"

namespace rehearse::run {

namespace {

struct Stopped {};  // the other thread failed: not an error of its own

bool carries_gradients(const Step& step) {
    return step.stream == Stream::send_gradients || step.stream == Stream::receive_gradients;
}

kernels::Operand operand_of(kernels::View data, std::span<std::byte> room) {
    return {data.type(), {static_cast<std::byte*>(data.bytes()), data.size_bytes()}, room};
}

}  // namespace

Executor::Executor(const Schedule& schedule, Program& program, const kernels::Communicator& world, Probe probe,
                   TradeLinks* servers)
    : program_(program),
      probe_(std::move(probe)),
      servers_(servers),
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
    make_edges(schedule, world);
    make_wires(schedule, world);
    const Collective agreement{CollectiveKind::all_reduce, {.name = "doubling"}, {world.size(), world.size()}, 1};
    agreement_rounds_ = {agreement, world.rank()};
    for (int stream = 0; stream < stream_count; ++stream) {
        Lane lane;
        for (const auto& [index, wire] : wires_) {
            if (steps[index].step->stream == static_cast<Stream>(stream)) lane.steps.push_back(index);
        }
        if (!lane.steps.empty()) lanes_.push_back(std::move(lane));
    }
    if (program.scales() && program.may_differ()) agreement_.emplace(world.split(0, world.rank()));
    if (!lanes_.empty() || agreement_) thread_ = std::thread{[this] { communicate(); }};
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

// Every rank makes the same communicators in the same order, whether it is on them or not.
void Executor::make_edges(const Schedule& schedule, const kernels::Communicator& world) {
    std::set<Edge> edges;
    for (std::int64_t rank = 0; rank < ranks(schedule.mesh); ++rank) {
        const std::vector<std::int64_t> at = coordinates(schedule.mesh, rank);
        for (const Step& step : schedule.classes[static_cast<std::size_t>(class_of(schedule, rank))].steps) {
            const auto* send = std::get_if<Send>(&step.action);
            if (send == nullptr) continue;
            const std::int64_t from = at[static_cast<std::size_t>(send->axis)];
            edges.insert({send->axis, from, from + send->offset, carries_gradients(step)});
        }
    }
    for (const Edge& edge : edges) {
        const auto& [axis, from, to, gradients] = edge;
        const std::vector<std::int64_t> group = group_of(schedule.mesh, axis, world.rank());
        const std::int64_t own = coordinates(schedule.mesh, world.rank())[static_cast<std::size_t>(axis)];
        const bool member = own == from || own == to;
        const std::int64_t color = 2 * group.front() + (member ? 1 : 0);
        edges_.emplace(edge, world.split(color, own == from ? 0 : 1));
    }
}

void Executor::make_wires(const Schedule& schedule, const kernels::Communicator& world) {
    const Placement placement{world};
    const std::span<ReadyStep> steps = program_.steps();
    // Communicators are made by all ranks together: one an axis, whoever of them sums along it.
    std::set<int> axes;
    for (const RankClass& rank_class : schedule.classes) {
        for (const Step& step : rank_class.steps) {
            if (const auto* action = std::get_if<Communicate>(&step.action)) axes.insert(action->axis);
        }
    }
    for (const int axis : axes) {
        const std::vector<std::int64_t> group = group_of(schedule.mesh, axis, world.rank());
        groups_.emplace(axis, world.split(group.front(), world.rank())).first->second.connect();
    }
    for (std::size_t i = 0; i < steps.size(); ++i) {
        const Step& step = *steps[i].step;
        if (const auto* action = std::get_if<Communicate>(&step.action)) {
            const std::vector<std::int64_t> ranks = group_of(schedule.mesh, action->axis, world.rank());
            kernels::Communicator& group = groups_.at(action->axis);
            const Collective collective{action->kind, action->algorithm, placement.group(ranks, action->algorithm),
                                        action->elements, action->root};
            const Wire& wire = wires_.emplace(i, Wire{&group, {collective, group.rank()}}).first->second;
            if (wire.rounds.slots == 0) continue;
            require(step.stream == Stream::communication, "one collective at a time has the room");
            const auto bytes =
                static_cast<std::size_t>((static_cast<double>(wire.rounds.slots) * size_of(action->type)).value);
            room_.resize(std::max(room_.size(), bytes));
        } else if (const auto* send = std::get_if<Send>(&step.action)) {
            wires_.emplace(i, message(schedule, step, send->axis, send->offset, world.rank(), steps[i].data.size()));
        } else if (const auto* recv = std::get_if<Recv>(&step.action)) {
            wires_.emplace(i, message(schedule, step, recv->axis, recv->offset, world.rank(), steps[i].data.size()));
        } else if (const auto* trade = std::get_if<Trade>(&step.action)) {
            wires_.emplace(i, this->trade(*trade, world.rank()));
        }
    }
}

Executor::Wire Executor::trade(const Trade& trade, std::int64_t rank) {
    require(servers_ != nullptr, "links to the servers");
    const auto link = servers_->find({rank, trade.server});
    if (link != servers_->end()) return {&link->second, trade_rounds(trade)};
    if (!nobody_) nobody_.emplace(kernels::Communicator::self());
    return {&*nobody_, {}};
}

// `count` numbers to or from a neighbour, who is the other one of two.
Executor::Wire Executor::message(const Schedule& schedule, const Step& step, int axis, std::int64_t offset,
                                 std::int64_t rank, std::size_t count) {
    const std::int64_t own = coordinates(schedule.mesh, rank)[static_cast<std::size_t>(axis)];
    const bool sends = std::holds_alternative<Send>(step.action);
    const Edge edge{axis, sends ? own : own + offset, sends ? own + offset : own, carries_gradients(step)};
    return {&edges_.at(edge), kernels::RankProgram::message(sends ? 1 : 0, sends, count)};
}

void Executor::run(int iteration, std::uint64_t seed, std::int64_t first_sample) {
    program_.begin_step();
    {
        const std::lock_guard lock{mutex_};
        done_.assign(done_.size(), false);
        iteration_ = iteration;
    }
    changed_.notify_all();
    const std::span<ReadyStep> steps = program_.steps();
    bool decided = !program_.scales();  // whether this step updates anything
    for (std::size_t i = 0; i < steps.size(); ++i) {
        if (steps[i].step->stream != Stream::compute) continue;
        for (const int before : steps[i].step->after) wait_for(static_cast<std::size_t>(before));
        time(i, [&] {
            if (!decided && std::holds_alternative<Update>(steps[i].step->action)) {
                program_.skip_updates(agreed(program_.has_overflowed()));
                decided = true;
            }
            if (probe_) probe_(iteration, *steps[i].step);
            program_.compute(steps[i], seed, first_sample);
        });
    }
    if (!decided) program_.skip_updates(agreed(false));  // without weights it has a voice none the less
    if (!thread_.joinable()) return;
    compute_is_idle_ = true;
    std::unique_lock lock{mutex_};
    changed_.wait(lock, [&] { return communicated_ == iteration || failure_; });
    compute_is_idle_ = false;
    if (failure_) std::rethrow_exception(failure_);
}

void Executor::sum_kept_gradients() {
    for (const auto& [index, wire] : wires_) {
        ReadyStep& ready = program_.steps()[index];
        const auto* sum = std::get_if<Communicate>(&ready.step->action);
        if (sum == nullptr || sum->bucket < 0 || sum->kind == CollectiveKind::all_gather) continue;
        if (ready.before) ready.before();
        wire.group->run(wire.rounds, operand_of(ready.data, room_));
        Program::finish(ready);
    }
}

// The compute stream waits; the other thread does it, beside what is under way there.
bool Executor::agreed(bool overflow) {
    if (!agreement_) return overflow;
    std::unique_lock lock{mutex_};
    flag_ = overflow ? 1 : 0;
    flag_state_ = Flag::asked;
    changed_.notify_all();
    compute_is_idle_ = true;
    changed_.wait(lock, [&] { return flag_state_ == Flag::known || failure_ || stop_; });
    compute_is_idle_ = false;
    if (failure_) std::rethrow_exception(failure_);
    if (stop_) throw Stopped{};
    flag_state_ = Flag::none;
    return flag_ > 0;
}

// One step of it; whether anything has happened.
bool Executor::go_on_agreeing() {
    if (!agreement_ || agreed_) return false;
    if (agreeing_ == nullptr) {
        {
            const std::lock_guard lock{mutex_};
            if (flag_state_ != Flag::asked) return false;
        }
        agreeing_ = std::make_unique<kernels::Operation>(*agreement_, agreement_rounds_, kernels::floats({&flag_, 1}));
    }
    if (!agreeing_->test()) return false;
    agreeing_.reset();
    agreed_ = true;
    {
        const std::lock_guard lock{mutex_};
        flag_state_ = Flag::known;
    }
    changed_.notify_all();
    return true;
}

std::vector<double> Executor::bytes_sent() const {
    std::vector<double> bytes(times_.size());
    for (const auto& [index, wire] : wires_) {
        const Bytes unit = size_of(program_.steps()[index].data.type());
        for (const auto& round : wire.rounds.rounds) {
            for (const auto& send : round.sends) bytes[index] += (static_cast<double>(send.count) * unit).value;
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
    for (Lane& lane : lanes_) lane.under_way.reset();  // on the thread that calls MPI
    agreeing_.reset();
}

void Executor::communicate_once() {
    for (Lane& lane : lanes_) lane.next = 0;
    agreed_ = !agreement_;
    const auto over = [](const Lane& lane) { return lane.next == lane.steps.size(); };
    while (!std::ranges::all_of(lanes_, over) || !agreed_) {
        bool moved = go_on_agreeing();
        for (Lane& lane : lanes_) moved = go_on(lane) || moved;
        if (moved) continue;
        if (agreeing_ || std::ranges::any_of(lanes_, [](const Lane& lane) { return lane.under_way != nullptr; })) {
            give_way();
        } else {
            wait_for_work();
        }
    }
    {
        const std::lock_guard lock{mutex_};
        communicated_ = iteration_;
    }
    changed_.notify_all();
}

bool Executor::go_on(Lane& lane) {
    if (lane.next == lane.steps.size()) return false;
    const std::size_t index = lane.steps[lane.next];
    ReadyStep& ready = program_.steps()[index];
    if (lane.under_way == nullptr) {
        {
            const std::lock_guard lock{mutex_};
            if (!is_free(lane)) return false;
        }
        times_[index].start = Clock::now();
        if (probe_) probe_(iteration_, *ready.step);
        if (ready.before) ready.before();
        const Wire& wire = wires_.at(index);
        const std::span<std::byte> room = ready.room.empty() ? std::span{room_} : ready.room;
        lane.under_way = std::make_unique<kernels::Operation>(*wire.group, wire.rounds, operand_of(ready.data, room));
    }
    if (!lane.under_way->test()) return false;
    lane.under_way.reset();
    Program::finish(ready);
    times_[index].end = Clock::now();
    if (awaited_[index]) finish(index);
    ++lane.next;
    return true;
}

// What its next step waits for is done. Guarded by the mutex.
bool Executor::is_free(const Lane& lane) const {
    if (lane.next == lane.steps.size()) return false;
    const Step& step = *program_.steps()[lane.steps[lane.next]].step;
    return std::ranges::all_of(step.after, [&](int before) {
        const auto index = static_cast<std::size_t>(before);
        return program_.steps()[index].step->stream == step.stream || done_[index];
    });
}

void Executor::wait_for_work() {
    std::unique_lock lock{mutex_};
    changed_.wait(lock, [&] {
        if (!agreed_ && flag_state_ == Flag::asked) return true;
        return failure_ || stop_ || std::ranges::any_of(lanes_, [&](const Lane& lane) { return is_free(lane); });
    });
    if (failure_) std::rethrow_exception(failure_);
    if (stop_) throw Stopped{};
}

template <typename Work>
void Executor::time(std::size_t index, const Work& work) {
    times_[index].start = Clock::now();
    work();
    times_[index].end = Clock::now();
    if (awaited_[index]) finish(index);
}

// For the compute stream.
void Executor::wait_for(std::size_t index) {
    if (program_.steps()[index].step->stream == Stream::compute) return;  // done: it is earlier on this very thread
    std::unique_lock lock{mutex_};
    compute_is_idle_ = true;
    changed_.wait(lock, [&] { return done_[index] || failure_ || stop_; });
    compute_is_idle_ = false;
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
