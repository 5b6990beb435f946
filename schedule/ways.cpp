// SPDX-License-Identifier: Apache-2.0
#include "schedule/ways.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
#include <tuple>
#include <utility>

#include "core/index.hpp"

namespace rehearse::schedule {

namespace {

/// Directed links of a node: 2 * NodeLink from a to b, 2 * NodeLink + 1 back; behind these its network cards, outwards.
using Links = std::vector<std::size_t>;
struct Path {
    Links links;
    Seconds latency;
};

constexpr std::int64_t nowhere = -1;  // as the node of a device: another node

/// Shortest paths in one kind of node: the fewest links, then the least latency; bridges alone forward.
class NodeWays {
public:
    explicit NodeWays(const NodeKind& kind) : kind_(kind) {
        for (std::size_t v = 0; v < kind.vertices.size(); ++v) {
            if (kind.vertices[v].kind == VertexKind::device) devices_.push_back(v);
            if (kind.vertices[v].kind == VertexKind::nic) nics_.push_back(v);
        }
        for (const std::size_t device : devices_) from_.push_back(all_from(device));
    }

    std::size_t directed_links() const { return 2 * kind_.links.size() + nics_.size(); }
    Bandwidth rate(std::size_t link, const Machine& machine) const {
        if (link >= 2 * kind_.links.size()) return machine.fabric.link.value * machine.across.fraction.value;
        return kind_.links[link / 2].bandwidth.value * machine.inside.fraction.value;
    }
    /// From one device to another, or to a card on the way out; no links: there is none.
    Path path(std::int64_t from, std::int64_t to) const {
        const std::vector<Reached>& reached = from_[at(from)];
        if (to != nowhere) return path_to(reached, devices_[at(to)]);
        const auto distance = [&](std::size_t vertex) {
            return std::tuple{reached[vertex].hops, reached[vertex].latency};
        };
        Links nearest;  // cards, of which devices take one each, in turn
        for (std::size_t nic = 0; nic < nics_.size(); ++nic) {
            if (reached[nics_[nic]].hops < 0) continue;
            if (!nearest.empty() && distance(nics_[nic]) > distance(nics_[nearest.front()])) continue;
            if (!nearest.empty() && distance(nics_[nic]) < distance(nics_[nearest.front()])) nearest.clear();
            nearest.push_back(nic);
        }
        if (nearest.empty()) return {};
        const std::size_t nic = nearest[at(from) % nearest.size()];
        Path out = path_to(reached, nics_[nic]);
        out.links.push_back(2 * kind_.links.size() + nic);
        return out;
    }

private:
    struct Reached {
        int hops = -1;  // not reached
        Seconds latency;
        std::size_t before = 0, link = 0;
    };

    std::vector<Reached> all_from(std::size_t from) const {
        std::vector<Reached> reached(kind_.vertices.size());
        reached[from].hops = 0;
        std::vector<std::size_t> level{from};
        while (!level.empty()) {
            std::vector<std::size_t> next;
            for (const std::size_t vertex : level) {
                if (vertex != from && kind_.vertices[vertex].kind != VertexKind::bridge) continue;
                for (std::size_t i = 0; i < 2 * kind_.links.size(); ++i) {
                    const NodeLink& link = kind_.links[i / 2];
                    if (at(i % 2 == 0 ? link.a : link.b) != vertex) continue;
                    Reached& there = reached[at(i % 2 == 0 ? link.b : link.a)];
                    const Reached found{reached[vertex].hops + 1, reached[vertex].latency + link.latency.value, vertex,
                                        i};
                    if (there.hops < 0)
                        next.push_back(at(i % 2 == 0 ? link.b : link.a));
                    else if (there.hops < found.hops || there.latency <= found.latency)
                        continue;
                    there = found;
                }
            }
            level = std::move(next);
        }
        return reached;
    }

    static Path path_to(const std::vector<Reached>& reached, std::size_t to) {
        Path path;
        path.latency = reached[to].latency;
        for (std::size_t vertex = to; reached[vertex].hops > 0; vertex = reached[vertex].before)
            path.links.push_back(reached[vertex].link);
        return path;
    }

    const NodeKind& kind_;
    std::vector<std::size_t> devices_, nics_;  // vertices
    std::vector<std::vector<Reached>> from_;   // by device
};

class WayFinder {
public:
    WayFinder(const Mesh& mesh, const std::vector<int>& copies, bool around, const Machine& machine)
        : mesh_(mesh), machine_(machine), axis_(axis_index(mesh, "pipe")), copies_(copies), around_(around) {
        for (const NodeKind& kind : machine.nodes) kinds_.emplace_back(kind);
        if (copies_.empty()) copies_.assign(at(size_of(mesh, axis_)), 1);
    }

    std::vector<Way> run() {
        std::vector<Way> ways;
        std::int64_t place = 0;
        for (std::size_t stage = 0; stage < copies_.size(); ++stage) {
            const std::int64_t on = next_of(place);
            ways.push_back(on == 0 ? Way{} : slowest(place, on));
            place += copies_[stage];
        }
        return ways;
    }

private:
    /// Of the ranks at this place along the pipe. They lie on nodes in a pattern that soon comes again: those of two
    /// nodes' worth are looked at.
    Way slowest(std::int64_t place, std::int64_t on) {
        const std::int64_t inner = stride(mesh_, axis_), all = ranks(mesh_) / size_of(mesh_, axis_);
        const std::int64_t looked_at = std::min(all, 2 * devices_per_node(machine_.nodes.front()));
        Way most;
        for (std::int64_t i = 0; i < looked_at; ++i) {
            const std::int64_t rank = (i / inner * size_of(mesh_, axis_) + place) * inner + i % inner;
            const Way way = way_of(rank, rank + on * inner);
            if (most.messaging == nullptr || way.s_per_byte > most.s_per_byte) most = way;
        }
        return most;
    }

    std::int64_t in_node(const DeviceAt& place) const {
        const std::vector<Vertex>& vertices = machine_.nodes[at(place.kind)].vertices;
        return std::count_if(vertices.begin(), vertices.begin() + place.vertex,
                             [](const Vertex& vertex) { return vertex.kind == VertexKind::device; });
    }

    Path path(std::int64_t from, std::int64_t to) const {
        const DeviceAt here = locate(machine_, from), there = locate(machine_, to);
        return kinds_[at(here.kind)].path(in_node(here), here.node == there.node ? in_node(there) : nowhere);
    }

    Way way_of(std::int64_t from, std::int64_t to) {
        const DeviceAt here = locate(machine_, from);
        const Path own = path(from, to);
        if (own.links.empty()) return unjoined();
        const bool across = here.node != locate(machine_, to).node;
        const std::vector<std::int64_t>& users = users_of(here, from);
        Way way{.messaging = across ? &machine_.across : &machine_.inside};
        for (const std::size_t link : own.links) {
            const Bandwidth rate = kinds_[at(here.kind)].rate(link, machine_);
            if (rate.value > 0)
                way.s_per_byte = std::max(way.s_per_byte, static_cast<double>(users[link]) / rate.value);
        }
        way.start_s = own.latency.value + (across ? own.latency + machine_.fabric.latency.value : Seconds{}).value;
        if (way.messaging->pieces.empty()) way.start_s += way.messaging->overhead.value.value;
        return way;
    }

    /// Ranks whose node is known by their number alone (of `run`, more of them on a host than the machine's nodes have
    /// devices): as if each were a node.
    Way unjoined() const {
        const Bandwidth rate = machine_.fabric.link.value * machine_.across.fraction.value;
        if (!(rate.value > 0)) return {};
        return {machine_.fabric.latency.value.value, 1 / rate.value, &machine_.across};
    }

    /// By link of the node of `rank`: how many of its ranks send to the next stage over it.
    const std::vector<std::int64_t>& users_of(const DeviceAt& here, std::int64_t rank) {
        const auto [known, fresh] = nodes_.try_emplace(here.node);
        if (!fresh) return known->second;
        std::vector<std::int64_t>& users = known->second;
        users.resize(kinds_[at(here.kind)].directed_links());
        const std::int64_t first = rank - in_node(here);
        const std::int64_t end = std::min(first + devices_per_node(machine_.nodes[at(here.kind)]), ranks(mesh_));
        for (std::int64_t other = first; other < end; ++other) {
            const std::int64_t place = place_on(mesh_, axis_, RankIndex{other});
            const std::int64_t on = next_of(place);
            if (on == 0) continue;
            for (const std::size_t link : path(other, other + on * stride(mesh_, axis_)).links) ++users[link];
        }
        return users;
    }

    /// How many places further the next stage's first copy is; 0 where there is none, and for copies behind the first
    /// one, which take turns.
    std::int64_t next_of(std::int64_t place) const {
        std::int64_t first = 0;
        for (std::size_t stage = 0; stage < copies_.size(); ++stage) {
            if (place == first) return stage + 1 < copies_.size() ? copies_[stage] : around_ ? -place : 0;
            first += copies_[stage];
        }
        return 0;
    }

    const Mesh& mesh_;
    const Machine& machine_;
    int axis_;
    std::vector<int> copies_;
    bool around_;
    std::vector<NodeWays> kinds_;
    std::map<std::int64_t, std::vector<std::int64_t>> nodes_;  // users of their links
};

}  // namespace

std::vector<Way> ways_of(const Mesh& mesh, const std::vector<int>& copies, bool around, const Machine& machine) {
    if (axis_index(mesh, "pipe") < 0 || ranks(mesh) < 2) return std::vector<Way>(1);
    return WayFinder{mesh, copies, around, machine}.run();
}

double seconds(const Way& way, std::int64_t messages, Bytes bytes) {
    if (way.messaging == nullptr || messages == 0) return 0;
    const auto count = static_cast<double>(messages);
    const Bytes each = bytes / count;
    const Seconds wire{each.value * way.s_per_byte};
    return count * (Seconds{way.start_s} + wire + beyond_wire(*way.messaging, each, wire)).value;
}

}  // namespace rehearse::schedule
