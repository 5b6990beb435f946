// SPDX-License-Identifier: Apache-2.0
// What NCCL believes a collective takes by each of its algorithms and protocols, by which it chooses one.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/collectives/collective.hpp"
#include "sim/collective/libraries/node_view.hpp"

namespace rehearse::sim {

/// A communicator and its library, as the tuner sees them.
struct Communicator {
    NodeView view;
    const LibraryVersion* version = nullptr;
    const LibraryTransport* transport = nullptr;
    ByNodes ll_across{};
    bool sharp = false;
    std::int64_t nodes = 1;  // `view.devices` ranks on each
    Channels channels;

    std::int64_t ranks() const { return nodes * view.devices; }
    /// RCCL: its tables are measured shares of the bus and steps, and stand for what a call takes, too.
    bool by_shares() const { return version->ring_share[0][2] > 0; }
    /// 0: one node, 1: two, 2: more.
    std::size_t by_nodes() const { return nodes == 1 ? 0 : nodes == 2 ? 1 : 2; }
};

/// One row of the tuner's table: time = latency + bytes / bandwidth.
struct Estimate {
    LibraryAlgorithm algorithm = LibraryAlgorithm::ring;
    LibraryProtocol protocol = LibraryProtocol::simple;
    double latency = 0;    // us, what depends on the size included, without what a plugin reports
    double bandwidth = 0;  // GB/s of the data
    double time = 0;       // us
};

/// All that are allowed, of `bytes` as nccl-tests counts them; none for an all-to-all, which the tuner does not know.
/// Source: src/graph/tuning.cc, ncclTopoTuneModel and ncclTopoGetAlgoTime.
std::vector<Estimate> estimates(const Communicator& communicator, CollectiveKind kind, double bytes);

/// The least; of those with these words only, where they are not empty. InputError where none is left.
Estimate chosen(const std::vector<Estimate>& all, const std::string& algorithm, const std::string& protocol);

/// Steps of a ring, and those of them between nodes.
struct RingSteps {
    double all = 0, across = 0;
};
RingSteps ring_steps(CollectiveKind kind, std::int64_t ranks, std::int64_t nodes);
/// GB/s of the data that the switches of one node sum, as the library counts.
double nvls_bandwidth(const Communicator& communicator);
/// us of a step of a ring or tree over the links inside a node.
double inside_step(const Communicator& communicator, bool tree, LibraryProtocol protocol);
/// ... between nodes. A ring of one device a node has a tree's.
double network_step(const Communicator& communicator, bool tree, LibraryProtocol protocol);

}  // namespace rehearse::sim
