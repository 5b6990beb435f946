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
#include "sim/network/node_rings.hpp"

namespace rehearse::sim {

namespace {

constexpr double giga = 1e9;
constexpr double fastest_pcie = 64;  // GB/s: PCIe 5 x16
constexpr double pcie_payload =
    0.82;  // of its rate, in packets of 256 bytes with 24 to 28 bytes beside them and acknowledgements

bool is_like(std::string_view name, std::string_view pattern) {
    return pattern.ends_with('*') ? name.starts_with(pattern.substr(0, pattern.size() - 1)) : name == pattern;
}

const LibraryArchitecture& architecture_of(const Machine& machine, const CollectiveSoftware& said,
                                           const DeviceClass& device) {
    std::vector<std::string_view> known;
    for (const LibraryArchitecture& each : said.library->architectures) {
        for (const std::string& pattern : each.devices) {
            known.emplace_back(pattern);
            for (const std::string& name : {device.like, device.name}) {
                if (is_like(name, pattern)) return each;
            }
        }
    }
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

void add_network(NodeView& view, const Machine& machine, const CollectiveSoftware& said, const NodeKind& kind,
                 const NodePaths& paths, std::span<const int> devices) {
    const double port = machine.fabric.link.value.value / giga;
    if (paths.nics() == 0 || !(port > 0)) return;
    std::set<int> nics;
    view.nic = view.nic_wire = std::numeric_limits<double>::infinity();
    for (const int device : devices) {
        for (const NicPath& way : paths.out(device)) {
            nics.insert(way.nic);
            const double rate = rate_of(way.path);
            view.nic = std::min({view.nic, port, rate * said.library->pcie_share});
            view.nic_wire = std::min({view.nic_wire, port, rate * pcie_payload});
            const NicTurn turn = turn_of(kind, way.path, said.nics_at);
            if (device == devices.front() || turn == NicTurn::in_cpu) view.nic_at = turn;
        }
    }
    view.rails = std::ssize(nics);
}

void all_cycles(std::vector<std::int64_t>& path, std::span<const double> capacity, std::int64_t n,
                std::vector<std::vector<std::int64_t>>& cycles) {
    if (std::ssize(path) == n) {
        if (capacity[at(path.back() * n)] > 0) cycles.push_back(path);
        return;
    }
    for (std::int64_t next = 1; next < n; ++next) {
        if (!(capacity[at(path.back() * n + next)] > 0) || std::ranges::find(path, next) != path.end()) continue;
        path.push_back(next);
        all_cycles(path, capacity, n, cycles);
        path.pop_back();
    }
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
    const NodePaths paths{kind, 1, 1};
    const Joins joins{kind};
    std::vector<int> vertices;
    for (int v = 0; v < std::ssize(kind.vertices); ++v) {
        if (joins.kind(v) == VertexKind::device) vertices.push_back(v);
    }
    const DeviceClass& device = machine.classes[at(kind.vertices[at(vertices[at(devices[0])])].device_class)];
    NodeView view{.architecture = &architecture_of(machine, said, device), .devices = std::ssize(devices), .links = {}};
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

std::int64_t rings_inside(const NodeView& view, double speed) {
    const auto whole = [speed](double rate) { return static_cast<std::int64_t>(std::floor(rate / speed + 1e-6)); };
    if (view.to_switch > 0) return whole(view.to_switch);
    const std::int64_t n = view.devices;
    std::vector<double> capacity(at(n * n));
    for (std::size_t i = 0; i < capacity.size(); ++i) capacity[i] = static_cast<double>(whole(view.links[i]));
    if (n > most_ring_devices) return 0;
    std::vector<std::vector<std::int64_t>> cycles;
    std::vector<std::int64_t> path{0};
    all_cycles(path, capacity, n, cycles);
    if (cycles.empty()) return 0;
    double sum = 0;
    for (const double each : most_through(cycles, capacity)) sum += each;
    return static_cast<std::int64_t>(std::floor(sum + 1e-6));
}

namespace {

struct Found {
    std::int64_t count = 0;
    double speed = 0;
    double bus() const { return static_cast<double>(count) * speed; }
};

template <typename F>
Found search(std::span<const double> speeds, double fastest, double all, const F& count) {
    Found best;
    for (const double speed : speeds) {
        if (speed > fastest + 1e-6) continue;
        if (best.count > 0 && speed <= 0.49 * best.speed) break;
        const Found found{count(speed), speed};
        if (found.bus() > best.bus() + 1e-6) best = found;
        if (best.bus() >= all - 1e-6) break;
    }
    return best;
}

// Fast channels are cut in two, so that more thread blocks work on them.
void cut_in_two(Found& found, const LibraryArchitecture& architecture) {
    if (found.speed < 25 || (!architecture.split_slow && found.speed < 50 && found.count > 4)) return;
    found.count *= 2;
    found.speed /= 2;
}

Channels on_one_node(const NodeView& view) {
    const LibraryArchitecture& architecture = *view.architecture;
    const double total = view.total();
    Found found;
    if (view.linked())
        found = search(architecture.speeds_inside, total, total, [&](double s) { return rings_inside(view, s); });
    Channels channels;
    if (found.count == 0 && view.linked()) {
        // No ring over the links alone: one step goes through a neighbour, at a lower speed, as often as links leave
        // the device that has the fewest.
        const auto slower =
            std::ranges::find_if(architecture.speeds_inside, [&](double s) { return s < architecture.link; });
        found = {static_cast<std::int64_t>(std::floor(total / architecture.link + 1e-6)),
                 slower == architecture.speeds_inside.end() ? architecture.link : *slower};
    } else if (found.count == 0) {
        found = search(architecture.speeds_inside, view.pcie, view.pcie, [](double) { return std::int64_t{1}; });
        if (found.count == 0) found = {1, view.pcie};
    }
    cut_in_two(found, architecture);
    channels.count = found.count;
    channels.inside = channels.across = channels.tree_inside = found.speed;
    return channels;
}

}  // namespace

Channels channels_of(const NodeView& view, std::int64_t nodes) {
    if (nodes == 1) return on_one_node(view);
    require(view.rails > 0, "nodes of several have network cards");
    const double within =
        view.devices < 2 ? std::numeric_limits<double>::infinity() : (view.linked() ? view.total() : view.pcie);
    const auto rails = static_cast<double>(view.rails);
    const auto count = [&](double s) {
        const double by_nics = rails * std::floor(view.nic / s + 1e-6);
        return static_cast<std::int64_t>(std::min(by_nics, std::floor(within / s + 1e-6)));
    };
    Found found = search(view.architecture->speeds_across, view.nic, within, count);
    if (found.count == 0) found = {view.rails, std::min(view.nic, within / rails)};
    cut_in_two(found, *view.architecture);
    Channels channels{.count = found.count, .inside = found.speed, .across = found.speed};
    channels.tree_inside = std::min(2 * found.speed, within / static_cast<double>(found.count));
    return channels;
}

}  // namespace rehearse::sim
