// SPDX-License-Identifier: Apache-2.0
#include "sim/host/loader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <map>
#include <utility>

#include "core/error.hpp"
#include "core/text.hpp"

namespace rehearse::sim {

namespace {

// Links from a device to the bridge or NIC that `end` says, over bridges; the shortest route, empty where there is
// none.
std::vector<int> route(const NodeKind& node, int device, const std::function<bool(const Vertex&)>& end) {
    std::vector<int> by(node.vertices.size(), -1), reached{device};
    for (std::size_t next = 0; next < reached.size(); ++next) {
        const int here = reached[next];
        const Vertex& vertex = node.vertices[static_cast<std::size_t>(here)];
        if (next > 0 && end(vertex)) {
            std::vector<int> links;
            for (int at = here; at != device;) {
                const NodeLink& link = node.links[static_cast<std::size_t>(links.emplace_back(by[at]))];
                at = link.a == at ? link.b : link.a;
            }
            return links;
        }
        if (next > 0 && vertex.kind != VertexKind::bridge) continue;
        for (std::size_t l = 0; l < node.links.size(); ++l) {
            const NodeLink& link = node.links[l];
            if (link.a != here && link.b != here) continue;
            const int other = link.a == here ? link.b : link.a;
            if (other == device || by[static_cast<std::size_t>(other)] >= 0) continue;
            by[static_cast<std::size_t>(other)] = static_cast<int>(l);
            reached.push_back(other);
        }
    }
    return {};
}

// To the nearest processor; where the node has none, to any bridge but NVLink's; else to the NIC.
std::vector<int> route_to_processor(const NodeKind& node, int device) {
    const auto is_bridge = [](const Vertex& v, BridgeKind kind) {
        return v.kind == VertexKind::bridge && v.bridge == kind;
    };
    std::vector<int> links = route(node, device, [&](const Vertex& v) { return is_bridge(v, BridgeKind::processor); });
    if (links.empty()) links = route(node, device, [&](const Vertex& v) { return is_bridge(v, BridgeKind::pcie); });
    if (links.empty()) links = route(node, device, [](const Vertex& v) { return v.kind == VertexKind::nic; });
    return links;
}

// Of the processes of one node that copy to these devices at the same time, the slowest one.
Bandwidth slowest_copy(const NodeKind& node, const std::vector<int>& devices) {
    std::map<int, double> sharing;  // by link
    std::vector<std::vector<int>> routes;
    for (const int device : devices) {
        for (const int link : routes.emplace_back(route_to_processor(node, device))) ++sharing[link];
        if (routes.back().empty()) {
            throw InputError(
                fmt::format("node '{}': no link from '{}' to a processor, over which batches could be "
                            "copied: say --loader inline:copy=RATE or copy=off",
                            node.name, node.vertices[static_cast<std::size_t>(device)].name));
        }
    }
    Bandwidth slowest{std::numeric_limits<double>::infinity()};
    for (const std::vector<int>& links : routes) {
        for (const int link : links) {
            const Bandwidth whole = node.links[static_cast<std::size_t>(link)].bandwidth.value;
            slowest = std::min({slowest, pageable * whole, whole * (1 / sharing[link])});
        }
    }
    return slowest;
}

bool has_own_memory(const Machine& machine, std::int64_t device) { return !class_of(machine, device).host; }

bool loads_from(const RankClass& rank_class, std::string_view tier) {
    return std::ranges::any_of(rank_class.steps, [&](const Step& step) {
        const auto* load = std::get_if<Load>(&step.action);
        return load != nullptr && load->tier == tier;
    });
}

}  // namespace

std::vector<std::string> loader_tiers(const Machine& machine, const Loader& loader, std::int64_t devices) {
    std::vector<std::string> tiers;
    if (loader.stack > Bandwidth{}) tiers.emplace_back(stacking);
    const bool copies = loader.copy ? *loader.copy > Bandwidth{}
                                    : has_own_memory(machine, std::min(devices, device_count(machine)) - 1);
    if (copies) tiers.emplace_back(to_device);
    return tiers;
}

Machine with_loader(Machine machine, const Loader& loader, const Schedule& schedule) {
    struct Node {
        int kind = 0;
        std::vector<int> devices;  // that have a process which loads
    };
    std::map<std::int64_t, Node> nodes;
    std::vector<bool> loads;  // by class
    for (const RankClass& rank_class : schedule.classes) {
        loads.push_back(loads_from(rank_class, stacking) || loads_from(rank_class, to_device));
    }
    const std::int64_t all = std::min(ranks(schedule.mesh), device_count(machine));
    for (RankIndex rank{0}; rank < all; ++rank) {
        if (!loads[static_cast<std::size_t>(class_of(schedule, rank))]) continue;
        const DeviceAt at = locate(machine, rank);
        Node& node = nodes[at.node];
        node.kind = at.kind;
        node.devices.push_back(at.vertex);
    }
    const bool copies = loads_from(schedule.classes.front(), to_device);
    std::size_t most = 0;
    std::map<std::pair<int, std::size_t>, Bandwidth> rates;  // by kind of node and number of processes
    for (const auto& [number, node] : nodes) {
        most = std::max(most, node.devices.size());
        if (!copies) continue;
        const auto [rate, fresh] = rates.try_emplace({node.kind, node.devices.size()});
        if (!fresh) continue;
        const NodeKind& kind = machine.nodes[static_cast<std::size_t>(node.kind)];
        rate->second = loader.copy ? *loader.copy : slowest_copy(kind, node.devices);
    }
    // A tier's rate is shared evenly by those of a node that read from it.
    const auto add = [&](std::string_view name, Bandwidth each, const char* source) {
        machine.storage.push_back({std::string{name}, {static_cast<double>(most) * each, source}, true});
    };
    if (loader.stack > Bandwidth{}) add(stacking, loader.stack, "a core of each process");
    if (copies) {
        const auto slowest = std::ranges::min_element(rates, {}, [](const auto& entry) { return entry.second; });
        add(to_device, slowest->second, "pageable memory");
    }
    return machine;
}

std::optional<Loader> parse_loader(const std::string& text) {
    const std::vector<std::string_view> words = split(text, ':');
    if ((text.empty() || words[0] == "ahead") && words.size() <= 1) return std::nullopt;
    if (words[0] != "inline") {
        throw InputError(fmt::format("--loader {}: ahead, inline or inline:stack=RATE:copy=RATE{}", text,
                                     did_you_mean(words[0], std::vector<std::string_view>{"ahead", "inline"})));
    }
    Loader loader;
    for (std::size_t i = 1; i < words.size(); ++i) {
        const std::string_view word = words[i];
        if (word == "read=ahead") {
            loader.reads_ahead = true;
            continue;
        }
        if (word == "copy=off") {
            loader.copy = Bandwidth{0};
        } else if (word == "stack=off") {
            loader.stack = Bandwidth{0};
        } else if (word.starts_with("copy=")) {
            loader.copy = parse_quantity<Bandwidth>(word.substr(5));
        } else if (word.starts_with("stack=")) {
            loader.stack = parse_quantity<Bandwidth>(word.substr(6));
        } else {
            throw InputError(
                fmt::format("--loader {}: '{}' is none of stack=RATE, copy=RATE and read=ahead", text, word));
        }
        const Bandwidth rate = word.starts_with("stack=") ? loader.stack : *loader.copy;
        if (!word.ends_with("=off") && !(rate > Bandwidth{})) {
            throw InputError(fmt::format("--loader {}: '{}' is not above 0", text, word));
        }
    }
    return loader;
}

}  // namespace rehearse::sim
