// SPDX-License-Identifier: Apache-2.0
#include "sim/rank_programs.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string_view>
#include <utility>

#include "core/error.hpp"
#include "core/quoting.hpp"
#include "sim/collective/groups.hpp"
#include "sim/steps.hpp"

namespace rehearse::sim {

namespace {

using Kind = ProgramNode::Kind;

class Maker {
public:
    Maker(const Schedule& schedule, const Machine& machine, Collectives_as how)
        : schedule_(schedule), wiring_(machine), steps_(schedule, wiring_, nominal), how_(how) {
        std::vector<RankIndex> all;
        for (RankIndex rank{0}; rank < steps_.ranks(); ++rank) all.push_back(rank);
        group(std::move(all));
    }

    RankPrograms made() {
        for (RankIndex rank{0}; rank < steps_.ranks(); ++rank) add(rank);
        return std::move(result_);
    }

private:
    std::int64_t group(std::vector<RankIndex> members) {
        const auto [place, fresh] = groups_.emplace(members, std::ssize(result_.groups));
        if (fresh) result_.groups.push_back(std::move(members));
        return place->second;
    }

    void add(RankIndex rank) {
        const int rank_class = steps_.class_of(rank);
        const std::vector<Step>& program = schedule_.classes[static_cast<std::size_t>(rank_class)].steps;
        nodes_ = &result_.ranks.emplace_back();
        std::map<Stream, std::vector<int>> last;  // of a stream
        std::vector<std::vector<int>> ends;       // of each step
        for (std::size_t i = 0; i < program.size(); ++i) {
            std::vector<int> after = last[program[i].stream];
            for (const int before : program[i].after) {
                const std::vector<int>& end = ends[static_cast<std::size_t>(before)];
                after.insert(after.end(), end.begin(), end.end());
            }
            std::ranges::sort(after);
            after.erase(std::unique(after.begin(), after.end()), after.end());
            ends.push_back(add(rank, rank_class, static_cast<int>(i), after));
            last[program[i].stream] = ends.back();
            count_ += std::ssize(ends.back());
            if (count_ > most_nodes) {
                throw InputError(fmt::format("a step of {} ranks has more than {} nodes: fewer --devices",
                                             steps_.ranks(), most_nodes));
            }
        }
    }

    /// The nodes that the step ends with.
    std::vector<int> add(RankIndex rank, int rank_class, int i, const std::vector<int>& after) {
        const Step& step = schedule_.classes[static_cast<std::size_t>(rank_class)].steps[static_cast<std::size_t>(i)];
        ProgramNode node;
        node.name = step.name;
        node.after = after;
        if (std::holds_alternative<PushPull>(step.action))
            throw InputError(fmt::format("{}: training with servers has no form in other simulators", step.name));
        if (const auto* send = std::get_if<Send>(&step.action)) {
            node.kind = Kind::send;
            return message(node, send->bytes, neighbour(schedule_.mesh, send->axis, rank, send->offset), step.stream);
        }
        if (const auto* recv = std::get_if<Recv>(&step.action)) {
            node.kind = Kind::receive;
            return message(node, recv->bytes, neighbour(schedule_.mesh, recv->axis, rank, recv->offset), step.stream);
        }
        if (const auto* communicate = std::get_if<Communicate>(&step.action)) {
            const Seconds beside = steps_.extra(rank_class, i);
            if (beside > Seconds{}) {  // what a method packs and adds up
                ProgramNode work = node;
                work.name += ":beside";
                work.time = beside;
                node.after = append(std::move(work));
            }
            return collective(std::move(node), *communicate, rank);
        }
        const Event event = steps_.event(rank_class, i);
        node.kind = std::holds_alternative<Load>(step.action) ? Kind::load : Kind::compute;
        node.time = steps_.duration(steps_.class_of(rank), i, rank);
        node.flops = event.flops;
        node.bytes = event.bytes;
        return append(std::move(node));
    }

    std::vector<int> append(ProgramNode node) {
        nodes_->push_back(std::move(node));
        return {static_cast<int>(nodes_->size()) - 1};
    }

    // Activations go one way and gradients the other, each in order.
    std::vector<int> message(ProgramNode& node, Bytes bytes, RankIndex peer, Stream stream) {
        const bool gradients = stream == Stream::send_gradients || stream == Stream::receive_gradients;
        node.bytes = bytes;
        node.peer = peer;
        node.tag = gradients ? 1 : 0;
        return append(std::move(node));
    }

    std::vector<int> collective(ProgramNode node, const Communicate& communicate, RankIndex rank) {
        if (communicate.kind == CollectiveKind::halo)
            throw InputError(fmt::format(
                "{}: halos of shared images, and keys that travel around a ring, have no form in other simulators",
                node.name));
        std::vector<RankIndex> members = group_of(schedule_.mesh, communicate.axis, rank);
        if (members.size() < 2) {  // nobody else: nothing is sent
            node.kind = Kind::compute;
            return append(std::move(node));
        }
        if (how_ == Collectives_as::messages) return rounds(node, communicate, rank);
        const double parts = communicate.kind == CollectiveKind::all_gather ? static_cast<double>(members.size()) : 1;
        node.kind = Kind::collective;
        node.collective = communicate.kind;
        node.root = communicate.root;
        node.bytes = static_cast<double>(communicate.elements) * size_of(communicate.type) * (1 / parts);
        node.group = group(std::move(members));
        return append(std::move(node));
    }

    std::vector<int> rounds(const ProgramNode& of, const Communicate& communicate, RankIndex rank) {
        const Call call = call_of(communicate);
        const Groups groups = groups_along(schedule_.mesh, call.axis, call.algorithm, wiring_);
        const Collective program = rounds_of(call, groups);
        const std::int64_t own = groups.member_of(rank), group = groups.group_of(rank);
        std::vector<int> before = of.after;
        for (std::int64_t round = 0; round < program.rounds(); ++round) {
            std::vector<int> now;
            for (const Message& each : program.messages(round)) {
                if (each.from == each.to || (each.from != own && each.to != own)) continue;
                const bool out = each.from == own;
                ProgramNode node;
                node.kind = out ? Kind::send : Kind::receive;
                node.name = fmt::format("{}:round{}", of.name, round);
                node.bytes = bytes_of(each, call.type);
                node.peer = groups.rank(group, out ? each.to : each.from);
                node.tag = 2 + call.axis;
                node.after = before;
                now.push_back(append(std::move(node)).front());
            }
            if (!now.empty()) before = std::move(now);
        }
        if (before != of.after) return before;
        return append(ProgramNode{.kind = Kind::compute, .name = of.name, .after = of.after});
    }

    const Schedule& schedule_;
    Wiring wiring_;
    Steps steps_;
    Collectives_as how_;
    RankPrograms result_;
    std::map<std::vector<RankIndex>, std::int64_t> groups_;
    std::vector<ProgramNode>* nodes_ = nullptr;
    std::int64_t count_ = 0;
};

}  // namespace

RankPrograms rank_programs(const Schedule& schedule, const Machine& machine, Collectives_as how) {
    return Maker{schedule, machine, how}.made();
}

bool computes_on_host(const ProgramNode& node) {
    const std::string_view name = node.name;
    const bool reads = name == "load" || name.starts_with("load:") || name.ends_with(":load") ||  // ours
                       name.find("DataLoader") != std::string_view::npos;                         // of PyTorch
    return node.kind == Kind::load && !reads;
}

void check_devices(const RankPrograms& programs, const Machine& machine) {
    if (std::ssize(programs.ranks) <= device_count(machine)) return;
    throw InputError(fmt::format("a schedule of {} ranks does not fit on machine '{}', which has {} devices",
                                 programs.ranks.size(), machine.name, device_count(machine)));
}

std::int64_t price_untimed(RankPrograms& programs, const Machine& machine, DataType type) {
    check_devices(programs, machine);
    std::int64_t count = 0;
    for (std::size_t rank = 0; rank < programs.ranks.size(); ++rank) {
        const DeviceClass& device = class_of(machine, static_cast<std::int64_t>(rank));
        for (ProgramNode& node : programs.ranks[rank]) {
            if (node.kind != Kind::compute || node.time > Seconds{}) continue;
            if (!(node.flops > Flops{}) && !(node.bytes > Bytes{})) continue;
            const auto peak = device.peak.find(type);
            if (peak == device.peak.end()) {
                throw InputError(
                    fmt::format("'{}' of rank {} has operations and no time, and device '{}' no peak for {}: "
                                "choose another --precision",
                                printable(node.name), rank, device.name, to_string(type)));
            }
            node.time = std::max(node.flops / peak->second.value, node.bytes / device.memory_bandwidth.value);
            ++count;
        }
    }
    return count;
}

}  // namespace rehearse::sim
