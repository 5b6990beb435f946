// SPDX-License-Identifier: Apache-2.0
#include "core/machine.hpp"

#include <algorithm>

#include "core/error.hpp"

namespace rehearse {

Machine::Machine() = default;
Machine::Machine(const Machine&) = default;
Machine::Machine(Machine&&) noexcept = default;
Machine& Machine::operator=(const Machine&) = default;
Machine& Machine::operator=(Machine&&) noexcept = default;
Machine::~Machine() = default;

std::string_view to_string(FusedKernel kernel) {
    switch (kernel) {
        case FusedKernel::library:
            return "library";
        case FusedKernel::flash:
            return "flash";
        case FusedKernel::triton:
            return "triton";
    }
    return "?";
}

std::string_view to_string(BridgeKind kind) {
    switch (kind) {
        case BridgeKind::pcie:
            return "pcie";
        case BridgeKind::processor:
            return "processor";
        case BridgeKind::nvlink:
            return "nvlink";
    }
    return "?";
}

std::int64_t devices_per_node(const NodeKind& node) {
    return std::ranges::count_if(node.vertices, [](const Vertex& v) { return v.kind == VertexKind::device; });
}

std::int64_t node_count(const Machine& machine) {
    std::int64_t count = 0;
    for (const NodeKind& kind : machine.nodes) count += kind.count;
    return count;
}

std::int64_t device_count(const Machine& machine) {
    std::int64_t count = 0;
    for (const NodeKind& kind : machine.nodes) count += kind.count * devices_per_node(kind);
    return count;
}

DeviceAt locate(const Machine& machine, std::int64_t device) {
    std::int64_t first_node = 0;
    for (std::size_t k = 0; k < machine.nodes.size(); ++k) {
        const NodeKind& kind = machine.nodes[k];
        const std::int64_t per_node = devices_per_node(kind);
        if (device >= kind.count * per_node) {
            device -= kind.count * per_node;
            first_node += kind.count;
            continue;
        }
        std::int64_t wanted = device % per_node;
        for (std::size_t v = 0; v < kind.vertices.size(); ++v) {
            if (kind.vertices[v].kind == VertexKind::device && wanted-- == 0) {
                return {first_node + device / per_node, static_cast<int>(k), static_cast<int>(v)};
            }
        }
    }
    require(false, "device number outside the machine");
    return {};
}

Bandwidth reaches_switches(const NodeKind& node) {
    const auto first = std::ranges::find(node.vertices, VertexKind::device, &Vertex::kind);
    const auto device = static_cast<int>(first - node.vertices.begin());
    Bandwidth to_switches{}, all{};
    for (const NodeLink& link : node.links) {
        if (link.a != device && link.b != device) continue;
        const Vertex& other = node.vertices[static_cast<std::size_t>(link.a == device ? link.b : link.a)];
        all += link.bandwidth.value;
        if (other.kind == VertexKind::bridge && other.bridge == BridgeKind::nvlink) to_switches += link.bandwidth.value;
    }
    return to_switches > Bandwidth{} ? to_switches : all;
}

Seconds beyond_wire(const Messaging& messaging, Bytes bytes, Seconds wire) {
    if (messaging.pieces.empty()) return Seconds{0};
    auto piece = messaging.pieces.begin();
    while (std::next(piece) != messaging.pieces.end() && bytes > piece->up_to) ++piece;
    return std::max(Seconds{0}, piece->overhead + bytes / piece->rate - wire);
}

const DeviceClass& class_of(const Machine& machine, std::int64_t device) {
    const DeviceAt at = locate(machine, device);
    const Vertex& vertex =
        machine.nodes[static_cast<std::size_t>(at.kind)].vertices[static_cast<std::size_t>(at.vertex)];
    return machine.classes.at(static_cast<std::size_t>(vertex.device_class));
}

}  // namespace rehearse
