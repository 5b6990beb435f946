// SPDX-License-Identifier: Apache-2.0
#include "sim/network/node_paths.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <tuple>

#include "core/error.hpp"

namespace rehearse::sim {

namespace {

struct Edge {
    int to = 0;
    std::int64_t link = 0;
    PerByte cost;
    Seconds latency;
};

using Graph = std::vector<std::vector<Edge>>;

Graph graph_of(const NodeKind& kind, double rate, double stretch, const std::set<std::int64_t>& failed) {
    const auto vertices = static_cast<int>(kind.vertices.size());
    Graph graph(kind.vertices.size());
    for (std::size_t i = 0; i < kind.links.size(); ++i) {
        if (failed.contains(static_cast<std::int64_t>(i))) continue;
        const NodeLink& link = kind.links[i];
        require(link.a >= 0 && link.a < vertices && link.b >= 0 && link.b < vertices, "a link joins two vertices");
        const auto a = static_cast<std::size_t>(link.a);
        const auto b = static_cast<std::size_t>(link.b);
        const std::string name = fmt::format("{}-{}", kind.vertices[a].name, kind.vertices[b].name);
        if (link.bandwidth.value.value <= 0) {
            throw InputError(fmt::format("node '{}': link {} needs a bandwidth above 0", kind.name, name));
        }
        const PerByte cost = inverse(link.bandwidth.value * rate);
        const Seconds latency = link.latency.value * stretch;
        const auto id = static_cast<std::int64_t>(2 * i);
        graph[a].push_back({link.b, id, cost, latency});
        graph[b].push_back({link.a, id + 1, cost, latency});
    }
    return graph;
}

struct Reached {
    int hops = -1;  // not reached
    Seconds latency;
    PerByte slowest;  // of its links
    int before = -1;
    const Edge* by = nullptr;
};

// Breadth first, level by level, so that the first way found has the fewest hops; within a level the least latency
// wins, then the widest way.
std::vector<Reached> reach(const Graph& graph, const NodeKind& kind, int from) {
    std::vector<Reached> reached(graph.size());
    reached[static_cast<std::size_t>(from)] = {0, Seconds{0}, PerByte{0}, -1, nullptr};
    std::vector<int> level{from};
    while (!level.empty()) {
        std::vector<int> next;
        for (const int v : level) {
            const Reached here = reached[static_cast<std::size_t>(v)];
            if (v != from && kind.vertices[static_cast<std::size_t>(v)].kind != VertexKind::bridge) continue;
            for (const Edge& edge : graph[static_cast<std::size_t>(v)]) {
                Reached& there = reached[static_cast<std::size_t>(edge.to)];
                const Seconds latency = here.latency + edge.latency;
                const PerByte slowest = std::max(here.slowest, edge.cost);
                const bool known = there.hops >= 0;
                const bool nearer = there.hops == here.hops + 1 &&
                                    std::tuple{latency, slowest} < std::tuple{there.latency, there.slowest};
                if (known && !nearer) continue;
                if (!known) next.push_back(edge.to);
                there = {here.hops + 1, latency, slowest, v, &edge};
            }
        }
        level = std::move(next);
    }
    return reached;
}

LocalPath path_to(const std::vector<Reached>& reached, int to) {
    LocalPath path;
    path.latency = reached[static_cast<std::size_t>(to)].latency;
    for (int v = to; reached[static_cast<std::size_t>(v)].by != nullptr;
         v = reached[static_cast<std::size_t>(v)].before) {
        const Edge& edge = *reached[static_cast<std::size_t>(v)].by;
        path.hops.push_back({edge.link, edge.cost});
    }
    std::ranges::reverse(path.hops);
    return path;
}

std::vector<int> vertices_of(const NodeKind& kind, VertexKind wanted) {
    std::vector<int> found;
    for (std::size_t v = 0; v < kind.vertices.size(); ++v) {
        if (kind.vertices[v].kind == wanted) found.push_back(static_cast<int>(v));
    }
    return found;
}

[[noreturn]] void not_connected(const NodeKind& kind, int a, const std::string& b) {
    throw InputError(fmt::format("node '{}': no path of links from {} to {}; only bridges forward", kind.name,
                                 kind.vertices[static_cast<std::size_t>(a)].name, b));
}

// The nearest of the candidates: those with the least (hops, latency).
std::vector<NicPath> nearest(std::vector<std::optional<LocalPath>> candidates) {
    std::vector<NicPath> best;
    const auto distance = [](const LocalPath& p) { return std::tuple{p.hops.size(), p.latency}; };
    for (std::size_t nic = 0; nic < candidates.size(); ++nic) {
        if (!candidates[nic]) continue;
        if (!best.empty() && distance(*candidates[nic]) > distance(best.front().path)) continue;
        if (!best.empty() && distance(*candidates[nic]) < distance(best.front().path)) best.clear();
        best.push_back({static_cast<int>(nic), *std::move(candidates[nic])});
    }
    return best;
}

// Of the NICs that the same devices are nearest to, each of these devices keeps its own.
void share_out(std::vector<std::vector<NicPath>>& of_device) {
    std::map<std::vector<int>, std::vector<std::size_t>> sharing;  // devices by the numbers of their NICs
    for (std::size_t device = 0; device < of_device.size(); ++device) {
        std::vector<int> nics;
        for (const NicPath& path : of_device[device]) nics.push_back(path.nic);
        sharing[nics].push_back(device);
    }
    for (const auto& [nics, devices] : sharing) {
        for (std::size_t turn = 0; turn < devices.size() && !nics.empty(); ++turn) {
            std::vector<NicPath>& all = of_device[devices[turn]];
            std::vector<NicPath> own;
            for (std::size_t n = turn % nics.size(); n < nics.size(); n += devices.size()) own.push_back(all[n]);
            all = std::move(own);
        }
    }
}

// Over one device between, by the widest such way, of equally wide ones by the device that the first link leads to
// fastest: ncclTopoSetPaths of NCCL's src/graph/paths.cc, whose lists of links begin with the widest.
std::optional<LocalPath> by_neighbour(const Graph& graph, const NodeKind& kind, int from, int to) {
    const auto joined = [&](int v) {
        std::vector<Edge> edges;
        for (const Edge& edge : graph[static_cast<std::size_t>(v)]) {
            if (kind.vertices[static_cast<std::size_t>(edge.to)].kind == VertexKind::device) edges.push_back(edge);
        }
        std::ranges::stable_sort(edges, std::less{}, &Edge::cost);
        return edges;
    };
    std::optional<LocalPath> best;
    PerByte slowest;
    for (const Edge& first : joined(from)) {
        for (const Edge& second : joined(first.to)) {
            const PerByte cost = std::max(first.cost, second.cost);
            if (second.to != to || (best && !(cost < slowest))) continue;
            slowest = cost;
            best =
                LocalPath{{{first.link, first.cost}, {second.link, second.cost}}, first.latency + second.latency, true};
        }
    }
    return best;
}

}  // namespace

bool between_devices(const NodeKind& kind, const LocalPath& path) {
    const auto passes = [&](int vertex) {
        const Vertex& v = kind.vertices[static_cast<std::size_t>(vertex)];
        return v.kind == VertexKind::device || (v.kind == VertexKind::bridge && v.bridge == BridgeKind::nvlink);
    };
    return std::ranges::all_of(path.hops, [&](const Hop& hop) {
        const NodeLink& link = kind.links[static_cast<std::size_t>(hop.link / 2)];
        return passes(link.a) && passes(link.b);
    });
}

NodePaths::NodePaths(const NodeKind& kind, double rate, double stretch, Forwards forwards,
                     const std::set<std::int64_t>& failed) {
    const Graph graph = graph_of(kind, rate, stretch, failed);
    const std::vector<int> devices = vertices_of(kind, VertexKind::device);
    const std::vector<int> nics = vertices_of(kind, VertexKind::nic);
    devices_ = static_cast<int>(devices.size());
    nics_ = static_cast<int>(nics.size());
    std::vector<std::vector<Reached>> from_nic;
    for (const int nic : nics) from_nic.push_back(reach(graph, kind, nic));
    const auto path_if = [](const std::vector<Reached>& from, int to) -> std::optional<LocalPath> {
        if (from[static_cast<std::size_t>(to)].hops < 0) return std::nullopt;
        return path_to(from, to);
    };
    for (const int device : devices) {
        const std::vector<Reached> from = reach(graph, kind, device);
        for (const int other : devices) {
            std::optional<LocalPath> path = path_if(from, other);
            if (forwards == Forwards::neighbours && (!path || !between_devices(kind, *path))) {
                if (auto way = by_neighbour(graph, kind, device, other)) path = std::move(way);
            }
            if (!path) not_connected(kind, device, kind.vertices[static_cast<std::size_t>(other)].name);
            between_.push_back(*std::move(path));
        }
        std::vector<std::optional<LocalPath>> out, in;
        for (std::size_t n = 0; n < nics.size(); ++n) {
            out.push_back(path_if(from, nics[n]));
            in.push_back(path_if(from_nic[n], device));
        }
        std::vector<NicPath>& all = from_nics_.emplace_back();
        for (std::size_t n = 0; n < nics.size(); ++n) {
            if (in[n]) all.push_back({static_cast<int>(n), *in[n]});
        }
        out_.push_back(nearest(std::move(out)));
        in_.push_back(nearest(std::move(in)));
        if (!nics.empty() && out_.back().empty()) not_connected(kind, device, "any NIC");
    }
    share_out(out_);
    share_out(in_);
}

const NicPath* NodePaths::from_nic(int nic, int device) const {
    const std::vector<NicPath>& all = from_nics_[static_cast<std::size_t>(device)];
    const auto found = std::ranges::find(all, nic, &NicPath::nic);
    return found == all.end() ? nullptr : &*found;
}

}  // namespace rehearse::sim
