// SPDX-License-Identifier: Apache-2.0
// A node as a library of collectives sees it: what joins its devices, and by how many cards they reach other nodes.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "core/collectives/library.hpp"
#include "core/machine.hpp"

namespace rehearse::sim {

/// Where a device's way to its network card turns.
enum class NicTurn { at_device, in_switch, in_cpu };

/// Rates are GB/s of 1e9 bytes, as the library counts them unless it says otherwise.
struct NodeView {
    const LibraryArchitecture* architecture = nullptr;
    std::int64_t devices = 1;   // that take part, of this node
    std::vector<double> links;  // links[i * devices + j]: from device i to j over links of their own
    bool joined = true;         // links join all devices, if not each with each
    double to_switch = 0;       // of a device to switches that join all; 0: there are none
    double pcie = 0;            // the slowest way from a device to the next where no links join them
    std::int64_t rails = 0;     // network cards that these devices use
    double nic = 0;             // of one of them, by the slowest link of the way to it
    double nic_wire = 0;        // the same by data sheets
    NicTurn nic_at = NicTurn::in_switch;
    /// Share of the devices whose data reach a card past the host's memory (GPUDirect): by a way that crosses no more
    /// than one socket, or over their links through a device that is beside a card.
    double gpudirect = 1;

    /// All that leaves a device over links to other devices; 0: it has none, or they leave others out of reach.
    double total() const;
    bool linked() const { return total() > 0; }
};

/// Of the devices with these numbers in a node. InputError where the library knows no such device.
NodeView view_of(const Machine& machine, const CollectiveSoftware& software, const NodeKind& kind,
                 std::span<const int> devices);

/// Rings or trees that a library lays through a machine's nodes.
struct Channels {
    std::int64_t count = 0;
    double inside = 0, across = 0;  // GB/s of one
    double tree_inside = 0;         // of a tree on two nodes, whose chain inside may carry twice what leaves
    double bus(std::int64_t nodes) const { return static_cast<double>(count) * (nodes <= 2 ? inside : across); }
};
/// As NCCL's search does (src/graph/search.cc): as many channels as fit, of one speed of its list, the fastest first.
Channels channels_of(const NodeView& view, std::int64_t nodes);

/// How many rings of speed `speed` go through all devices at once: edge-disjoint Hamiltonian cycles over the links that
/// join them, or what the switches carry.
std::int64_t rings_inside(const NodeView& view, double speed);

}  // namespace rehearse::sim
