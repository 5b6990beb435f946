// SPDX-License-Identifier: Apache-2.0
// Which ranks share a host: what a hierarchical all-reduce must know.
#pragma once

#include <cstdint>
#include <vector>

#include "core/collectives/collective.hpp"
#include "kernels/comm/communicator.hpp"

namespace rehearse::run {

class Placement {
public:
    explicit Placement(const kernels::Communicator& world);
    explicit Placement(std::vector<std::int64_t> node_of_rank) : node_of_(std::move(node_of_rank)) {}

    /// `ranks`, in their order, as a group. Of a hierarchical algorithm each host must hold as many of them, one after
    /// the other: InputError otherwise. Other algorithms do not care, and get one host.
    Group group(const std::vector<RankIndex>& ranks, const Algorithm& algorithm) const;

private:
    std::vector<std::int64_t> node_of_;  // of each rank of the world
};

}  // namespace rehearse::run
