// SPDX-License-Identifier: Apache-2.0
#include "run/wires.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <functional>
#include <set>

#include "core/error.hpp"
#include "run/placement.hpp"

namespace rehearse::run {

namespace {

bool carries_gradients(const Step& step) {
    return step.stream == Stream::send_gradients || step.stream == Stream::receive_gradients;
}

}  // namespace

// Every rank makes the same communicators in the same order, whether it is on them or not.
void Wires::make_edges(const Schedule& schedule, const kernels::Communicator& world) {
    std::set<Edge> edges;
    for (RankIndex rank{0}; rank < ranks(schedule.mesh); ++rank) {
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
        const RankIndex rank{world.rank()};
        const std::vector<RankIndex> group = group_of(schedule.mesh, axis, rank);
        const std::int64_t own = coordinates(schedule.mesh, rank)[static_cast<std::size_t>(axis)];
        const bool member = own == from || own == to;
        const std::int64_t color = 2 * group.front() + (member ? 1 : 0);
        edges_.emplace(edge, world.split(color, own == from ? 0 : 1));
    }
}

// Communicators are made by all ranks together: one a stream and axis, whoever of them sums along it.
void Wires::make_groups(const Schedule& schedule, const kernels::Communicator& world) {
    std::set<Group> groups;
    for (const RankClass& rank_class : schedule.classes) {
        for (const Step& step : rank_class.steps) {
            if (const auto* action = std::get_if<Communicate>(&step.action)) groups.insert({step.stream, action->axis});
        }
    }
    for (const Group& group : groups) {
        const std::vector<RankIndex> along = group_of(schedule.mesh, group.second, RankIndex{world.rank()});
        groups_.emplace(group, world.split(along.front(), world.rank())).first->second.connect();
        devices_[group] = device_group(groups_.at(group));
    }
}

Wires::Wires(const Schedule& schedule, Program& program, const kernels::Communicator& world, ServerLinks* servers)
    : device_(program.device()), servers_(servers) {
    make_edges(schedule, world);
    const Placement placement{world};
    const RankIndex rank{world.rank()};
    make_groups(schedule, world);
    const std::span<ReadyStep> steps = program.steps();
    for (std::size_t i = 0; i < steps.size(); ++i) {
        const Step& step = *steps[i].step;
        if (const auto* action = std::get_if<Communicate>(&step.action)) {
            steps_.emplace(i, collective(schedule, steps[i], *action, placement, rank));
        } else if (const auto* send = std::get_if<Send>(&step.action)) {
            steps_.emplace(i, message(schedule, step, send->axis, send->offset, rank, steps[i].data.size()));
        } else if (const auto* recv = std::get_if<Recv>(&step.action)) {
            steps_.emplace(i, message(schedule, step, recv->axis, recv->offset, rank, steps[i].data.size()));
        } else if (const auto* exchange = std::get_if<PushPull>(&step.action)) {
            steps_.emplace(i, push_pull(schedule, *exchange, rank));
        }
    }
}

Wire Wires::collective(const Schedule& schedule, const ReadyStep& ready, const Communicate& action,
                       const Placement& placement, RankIndex rank) {
    const std::vector<RankIndex> ranks = group_of(schedule.mesh, action.axis, rank);
    const Group along{ready.step->stream, action.axis};
    kernels::Communicator& group = groups_.at(along);
    const Collective collective{action.kind, action.algorithm, placement.group(ranks, action.algorithm),
                                action.elements, action.root};
    const bool sums = action.kind == CollectiveKind::all_reduce && is_sum(action.algorithm) &&
                      !ready.on_device.empty() && ready.additions.empty();
    Wire wire{&group, {collective, group.rank()}, sums ? devices_.at(along).get() : nullptr};
    wire.room = static_cast<std::size_t>((static_cast<double>(wire.rounds.slots) * size_of(action.type)).value);
    return wire;
}

Wire Wires::push_pull(const Schedule& schedule, const PushPull& action, RankIndex rank) {
    require(servers_ != nullptr, "links to the servers");
    if (pushes(schedule.mesh, rank, action)) return {&servers_->at({rank, action.server}), push_pull_rounds(action)};
    if (!nobody_) nobody_.emplace(kernels::Communicator::self());
    return {&*nobody_, {}};
}

// All ranks of the axis decide together.
std::unique_ptr<kernels::DeviceGroup> Wires::device_group(const kernels::Communicator& group) const {
    if (device_ == nullptr || group.size() == 1) return nullptr;
    std::string host(256, '\0');
    gethostname(host.data(), host.size() - 1);
    const std::size_t hash = std::hash<std::string>{}(host.c_str() + std::string{"/"} + device_->identity());
    const std::array<double, 2> mine{device_->group_refusal().empty() ? 1.0 : 0.0, static_cast<double>(hash >> 12)};
    const std::vector<double> all = group.all_gather(mine);
    std::set<double> devices;
    for (std::size_t i = 0; i < all.size(); i += 2) {
        if (all[i] == 0) return nullptr;
        devices.insert(all[i + 1]);
    }
    if (static_cast<std::int64_t>(devices.size()) < group.size()) return nullptr;
    std::vector<std::byte> name = group.rank() == 0 ? device_->group_name() : std::vector<std::byte>{};
    double size = static_cast<double>(name.size());
    size = group.all_gather({&size, 1}).front();
    name.resize(static_cast<std::size_t>(size));
    group.broadcast(name, 0);
    return device_->join(name, group.rank(), group.size());
}

// `count` numbers to or from a neighbour, who is the other one of two.
Wire Wires::message(const Schedule& schedule, const Step& step, int axis, std::int64_t offset, RankIndex rank,
                    std::size_t count) {
    const std::int64_t own = coordinates(schedule.mesh, rank)[static_cast<std::size_t>(axis)];
    const bool sends = std::holds_alternative<Send>(step.action);
    const Edge edge{axis, sends ? own : own + offset, sends ? own + offset : own, carries_gradients(step)};
    return {&edges_.at(edge), kernels::RankProgram::message(sends ? 1 : 0, sends, count)};
}

kernels::Operand operand_of(kernels::View data, std::span<std::byte> room) {
    return {data.type(), {static_cast<std::byte*>(data.bytes()), data.size_bytes()}, room};
}

}  // namespace rehearse::run
