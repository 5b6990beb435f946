// SPDX-License-Identifier: Apache-2.0
// Shortest paths inside a node, once a kind of node: between its devices, and between each device and its nearest NICs.
#pragma once

#include <cstdint>
#include <set>
#include <span>
#include <vector>

#include "core/machine.hpp"
#include "sim/network/hop.hpp"

namespace rehearse::sim {

struct LocalPath {
    std::vector<Hop> hops;  // links are numbered in the node: 2 * NodeLink for a > b, 2 * NodeLink + 1 for b > a
    Seconds latency;
    bool by_neighbour = false;  // a device passes it on
};

/// A device's way to or from one NIC.
struct NicPath {
    int nic = 0;  // among the node's NICs
    LocalPath path;
};

/// Which vertices of a node pass on what is not theirs.
enum class Forwards {
    bridges,
    neighbours  // and a device, between two devices that it is joined to and that would meet on the host (NCCL's NVB)
};

/// Paths have the fewest hops, then the least latency, then the widest links; only bridges forward, or as `Forwards`
/// says.
class NodePaths {
public:
    /// Bandwidths are multiplied by `rate`, latencies by `stretch`. InputError when two devices, or a
    /// device and every NIC of a node that has some, are not connected, or a link has no bandwidth. No path goes over
    /// links whose numbers in the kind are among the failed ones.
    NodePaths(const NodeKind& kind, double rate, double stretch, Forwards forwards,
              const std::set<std::int64_t>& failed = {});

    int devices() const { return devices_; }
    int nics() const { return nics_; }
    const LocalPath& between(int from, int to) const { return between_[index(from, to)]; }
    /// To and from the NICs that are the device's own. Of equally near ones, the devices that share them take one each,
    /// in turn, as NCCL does (ncclTopoGetLocalNet): two devices and two NICs of a socket are two pairs. Where there are
    /// more NICs than devices, each device has several.
    std::span<const NicPath> out(int device) const { return out_[static_cast<std::size_t>(device)]; }
    std::span<const NicPath> in(int device) const { return in_[static_cast<std::size_t>(device)]; }
    /// From any NIC; nothing where no path leads from it to the device.
    const NicPath* from_nic(int nic, int device) const;

private:
    std::size_t index(int from, int to) const { return static_cast<std::size_t>(from * devices_ + to); }

    int devices_ = 0, nics_ = 0;
    std::vector<LocalPath> between_;
    std::vector<std::vector<NicPath>> out_, in_, from_nics_;  // by device
};

/// Whether a path keeps to devices and the switches that join them with each other alone.
bool between_devices(const NodeKind& kind, const LocalPath& path);

}  // namespace rehearse::sim
