// SPDX-License-Identifier: Apache-2.0
// Who talks to whom: the communicators of a rank, and each step's part of its collective or message.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include "core/schedule.hpp"
#include "kernels/comm/communicator.hpp"
#include "run/methods/server_shard.hpp"
#include "run/placement.hpp"
#include "run/program.hpp"

namespace rehearse::run {

/// What a step sends and receives, and among whom.
struct Wire {
    kernels::Communicator* group = nullptr;
    kernels::RankProgram rounds;
    kernels::DeviceGroup* devices = nullptr;  // that do it in the hosts' place
    std::size_t room = 0;                     // bytes beside the data (RankProgram::slots)
};

/// What a collective works on: a step's data, and room beside them.
kernels::Operand operand_of(kernels::View data, std::span<std::byte> room);

class Wires {
public:
    /// Collective over `world`, the ranks of the mesh. What it is given outlives it; `servers` is null where there are
    /// none.
    Wires(const Schedule& schedule, Program& program, const kernels::Communicator& world, ServerLinks* servers);

    /// By step of the program: those that send or receive.
    std::map<std::size_t, Wire>& steps() { return steps_; }
    const std::map<std::size_t, Wire>& steps() const { return steps_; }

private:
    /// Two neighbours on an axis and what one sends the other: axis, coordinates of sender and receiver, whether it is
    /// gradients.
    using Edge = std::tuple<int, std::int64_t, std::int64_t, bool>;
    /// Streams go on at the same time, so that each has communicators of its own along its axes.
    using Group = std::pair<Stream, int>;

    void make_edges(const Schedule& schedule, const kernels::Communicator& world);
    void make_groups(const Schedule& schedule, const kernels::Communicator& world);
    Wire collective(const Schedule& schedule, const ReadyStep& ready, const Communicate& action,
                    const Placement& placement, RankIndex rank);
    Wire push_pull(const Schedule& schedule, const PushPull& action, RankIndex rank);
    Wire message(const Schedule& schedule, const Step& step, int axis, std::int64_t offset, RankIndex rank,
                 std::size_t count);
    /// Of the ranks of an axis, where each has a device of its own and they make groups; else null.
    std::unique_ptr<kernels::DeviceGroup> device_group(const kernels::Communicator& group) const;

    kernels::Device* device_;
    std::map<Group, kernels::Communicator> groups_;
    std::map<Group, std::unique_ptr<kernels::DeviceGroup>> devices_;
    std::map<Edge, kernels::Communicator> edges_;
    ServerLinks* servers_;
    std::optional<kernels::Communicator> nobody_;  // of pushes that another rank of the group does
    std::map<std::size_t, Wire> steps_;
};

}  // namespace rehearse::run
