// SPDX-License-Identifier: Apache-2.0
#include "sim/collective/libraries/node_view.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <set>

#include "core/error.hpp"
#include "core/index.hpp"
#include "core/text.hpp"
#include "sim/network/node_paths.hpp"

namespace rehearse::sim {

namespace {

constexpr double giga = 1e9;
constexpr double fastest_pcie = 64;  // GB/s: PCIe 5 x16
constexpr double pcie_payload =
    0.82;  // of its rate, in packets of 256 bytes with 24 to 28 bytes beside them and acknowledgements

const LibraryArchitecture& known_architecture(const Machine& machine, const CollectiveSoftware& said,
                                              const DeviceClass& device) {
    const LibraryArchitecture* found = architecture_of(*said.library, device.like, device.name);
    if (found != nullptr) return *found;
    std::vector<std::string_view> known;
    for (const LibraryArchitecture& each : said.library->architectures)
        known.insert(known.end(), each.devices.begin(), each.devices.end());
    throw InputError(fmt::format("{}: machine '{}': {} knows no device '{}'; it knows {}", machine.origin, machine.name,
                                 said.library->name, device.name, join(known)));
}

double rate_of(const LocalPath& path) {
    PerByte slowest;
    for (const Hop& hop : path.hops) slowest = std::max(slowest, hop.cost);
    return 1 / slowest.value / giga;
}

/// The links of a node's kind by vertex.
class Joins {
public:
    explicit Joins(const NodeKind& kind) : kind_(kind) {}

    int other(const NodeLink& link, int vertex) const { return link.a == vertex ? link.b : link.a; }
    VertexKind kind(int vertex) const { return kind_.vertices[at(vertex)].kind; }

    template <typename F>
    void each(int vertex, const F& f) const {
        for (const NodeLink& link : kind_.links) {
            if (link.a == vertex || link.b == vertex) f(link, other(link, vertex));
        }
    }

    /// Joins devices alone, faster than PCIe or beside it: a switch of their own links.
    bool device_switch(int vertex) const {
        if (kind(vertex) != VertexKind::bridge) return false;
        int devices = 0, others = 0;
        bool faster = true, beside = true;
        each(vertex, [&](const NodeLink& link, int peer) {
            const bool device = kind(peer) == VertexKind::device;
            (device ? devices : others) += 1;
            faster = faster && link.bandwidth.value.value > fastest_pcie * giga;
            int links = 0;
            each(peer, [&](const NodeLink& of_peer, int end) {
                links += of_peer.bandwidth.value.value > 0 && end != vertex;
            });
            beside = beside && links > 0;
        });
        return devices > 1 && others == 0 && (faster || beside);
    }

    /// A bridge is a CPU where it has links of another rate to other bridges (sockets), or is the node's only one.
    bool cpu(int vertex) const {
        if (kind(vertex) != VertexKind::bridge || device_switch(vertex)) return false;
        double slot = 0;
        each(vertex, [&](const NodeLink& link, int peer) {
            if (kind(peer) != VertexKind::bridge) slot = std::max(slot, link.bandwidth.value.value);
        });
        bool socket = false, alone = true;
        each(vertex, [&](const NodeLink& link, int peer) {
            if (kind(peer) == VertexKind::bridge) socket = socket || link.bandwidth.value.value != slot;
        });
        for (int other = 0; other < std::ssize(kind_.vertices); ++other) {
            if (other != vertex && kind(other) == VertexKind::bridge && !device_switch(other)) alone = false;
        }
        return socket || alone;
    }

private:
    const NodeKind& kind_;
};

NicTurn turn_of(const NodeKind& kind, const LocalPath& path, const std::string& said) {
    if (said == "gpu" || path.hops.size() == 1) return NicTurn::at_device;
    if (!said.empty()) return said == "cpu" ? NicTurn::in_cpu : NicTurn::in_switch;
    const Joins joins{kind};
    for (const Hop& hop : path.hops) {
        const NodeLink& link = kind.links[at(hop.link / 2)];
        if (joins.cpu(link.a) || joins.cpu(link.b)) return NicTurn::in_cpu;
    }
    return NicTurn::in_switch;
}

/// Sockets, or domains of memory in one, that a way goes through.
std::int64_t sockets_on(const Joins& joins, const NodeKind& kind, const LocalPath& path) {
    std::set<int> sockets;
    for (const Hop& hop : path.hops) {
        const NodeLink& link = kind.links[at(hop.link / 2)];
        for (const int vertex : {link.a, link.b}) {
            if (joins.cpu(vertex)) sockets.insert(vertex);
        }
    }
    return std::ssize(sockets);
}

void add_network(NodeView& view, const Machine& machine, const CollectiveSoftware& said, const NodeKind& kind,
                 const NodePaths& paths, std::span<const int> devices) {
    const double port = machine.fabric.link.value.value / giga;
    if (paths.nics() == 0 || !(port > 0)) return;
    const Joins joins{kind};
    std::set<int> nics;
    std::int64_t far = 0;
    bool beside = false;
    view.nic = view.nic_wire = std::numeric_limits<double>::infinity();
    for (const int device : devices) {
        for (const NicPath& way : paths.out(device)) {
            nics.insert(way.nic);
            const double rate = rate_of(way.path);
            view.nic = std::min({view.nic, port, rate * said.library->pcie_share});
            view.nic_wire = std::min({view.nic_wire, port, rate * pcie_payload});
            const NicTurn turn = turn_of(kind, way.path, said.nics_at);
            if (device == devices.front() || turn == NicTurn::in_cpu) view.nic_at = turn;
            beside = beside || turn != NicTurn::in_cpu;
        }
        const std::span<const NicPath> ways = paths.out(device);
        far += std::ranges::all_of(ways, [&](const NicPath& way) { return sockets_on(joins, kind, way.path) > 1; });
    }
    view.rails = std::ssize(nics);
    // src/graph/paths.cc: no GPUDirect beyond a socket (PATH_SYS), but by the neighbour of a switch (PXN).
    if (!(beside && view.linked())) view.gpudirect = 1 - static_cast<double>(far) / static_cast<double>(devices.size());
}

// Whether each of `n` devices can be reached from the first over links alone.
bool join_all(std::span<const double> links, std::int64_t n) {
    std::vector<std::int64_t> reached{0};
    for (std::size_t i = 0; i < reached.size(); ++i) {
        for (std::int64_t next = 0; next < n; ++next) {
            if (links[at(reached[i] * n + next)] > 0 && std::ranges::find(reached, next) == reached.end())
                reached.push_back(next);
        }
    }
    return std::ssize(reached) == n;
}

}  // namespace

double NodeView::total() const {
    if (to_switch > 0 || devices < 2 || links.empty()) return devices < 2 ? 0 : to_switch;
    if (!joined) return 0;
    double least = std::numeric_limits<double>::infinity();
    for (std::int64_t i = 0; i < devices; ++i) {
        const auto row = std::span{links}.subspan(at(i * devices), at(devices));
        least = std::min(least, std::accumulate(row.begin(), row.end(), 0.0));
    }
    return least;
}

NodeView view_of(const Machine& machine, const CollectiveSoftware& said, const NodeKind& kind,
                 std::span<const int> devices) {
    require(!devices.empty(), "devices that use a library");
    if (said.library == nullptr)
        throw InputError(
            fmt::format("machine '{}' names no library of collectives: read it from a file, which may have "
                        "[collectives] library = \"nccl\"",
                        machine.name));
    const NodePaths paths{kind, 1, 1, Forwards::bridges};
    const Joins joins{kind};
    std::vector<int> vertices;
    for (int v = 0; v < std::ssize(kind.vertices); ++v) {
        if (joins.kind(v) == VertexKind::device) vertices.push_back(v);
    }
    const DeviceClass& device = machine.classes[at(kind.vertices[at(vertices[at(devices[0])])].device_class)];
    NodeView view{
        .architecture = &known_architecture(machine, said, device), .devices = std::ssize(devices), .links = {}};
    const auto counted = [&](double bytes_per_second) {
        return std::floor(bytes_per_second / giga / view.architecture->wire + 0.01) * view.architecture->link;
    };
    const std::int64_t n = view.devices;
    view.links.assign(at(n * n), 0);
    view.pcie = std::numeric_limits<double>::infinity();
    for (std::int64_t i = 0; i < n; ++i) {
        joins.each(vertices[at(devices[at(i)])], [&](const NodeLink& link, int peer) {
            if (joins.device_switch(peer)) view.to_switch = counted(link.bandwidth.value.value);
            for (std::int64_t j = 0; j < n; ++j) {
                if (vertices[at(devices[at(j)])] == peer)
                    view.links[at(i * n + j)] += counted(link.bandwidth.value.value);
            }
        });
        if (n < 2) continue;
        const LocalPath& next = paths.between(devices[at(i)], devices[at((i + 1) % n)]);
        view.pcie = std::min(view.pcie, rate_of(next) * said.library->pcie_share);
    }
    if (n < 2) view.pcie = 0;
    view.joined = join_all(view.links, n);
    add_network(view, machine, said, kind, paths, devices);
    return view;
}

}  // namespace rehearse::sim
