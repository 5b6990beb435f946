// SPDX-License-Identifier: Apache-2.0
// The links of a machine by their numbers: names and kinds for people, and which of them are alike.
#include <fmt/format.h>

#include "core/error.hpp"
#include "sim/network/wiring.hpp"

namespace rehearse::sim {

Link Wiring::node_link(const Kind& kind, std::int64_t id) const {
    const std::int64_t node = placed(kind.first_node + (id - kind.first_link) / kind.links);
    const std::int64_t local = (id - kind.first_link) % kind.links;
    const NodeKind& source = machine_.nodes[static_cast<std::size_t>(&kind - kinds_.data())];
    if (local >= kind.nic_links) {
        const std::int64_t nic = (local - kind.nic_links) / 2;
        const Bandwidth bandwidth{1 / nic_cost_.value};
        const std::string_view direction = local % 2 == 0 ? "up" : "down";
        return {fmt::format("node{}:nic{}:{}", node, nic, direction), fmt::format("nic:{}", direction), bandwidth,
                local % 2 == 0 ? Crossing::into_fabric : Crossing::out_of_fabric};
    }
    const NodeLink& link = source.links[static_cast<std::size_t>(local / 2)];
    const bool forward = local % 2 == 0;
    const Vertex& a = source.vertices[static_cast<std::size_t>(forward ? link.a : link.b)];
    const Vertex& b = source.vertices[static_cast<std::size_t>(forward ? link.b : link.a)];
    // Counted, because parallel links have the same ends.
    return {fmt::format("node{}:link{}:{}>{}", node, local / 2, a.name, b.name), group_of(a) + ">" + group_of(b),
            link.bandwidth.value * inside_rate()};
}

Link Wiring::link(std::int64_t id) const {
    Link link = sound_link(id);
    const auto share = shares_.find(id);
    if (share != shares_.end()) link.bandwidth = link.bandwidth * share->second;
    return link;
}

Link Wiring::sound_link(std::int64_t id) const {
    require(id >= 0 && id < link_count(), "a link of the machine");
    if (id >= first_switch_link_) {
        return std::visit([&](const auto& s) { return s.link(id - first_switch_link_); }, switches_);
    }
    for (const Kind& kind : kinds_) {
        if (id < kind.first_link + (kind.end_node - kind.first_node) * kind.links) return node_link(kind, id);
    }
    require(false, "a link inside a node");
    return {};
}

std::int64_t Wiring::alike(std::int64_t id) const {
    require(id >= 0 && id < link_count(), "a link of the machine");
    if (id >= first_switch_link_) {
        return first_switch_link_ +
               std::visit([&](const auto& s) { return s.alike(id - first_switch_link_); }, switches_);
    }
    const Kind* kind = kinds_.data();
    while (id >= kind->first_link + (kind->end_node - kind->first_node) * kind->links) ++kind;
    return kind->first_link + (id - kind->first_link) % kind->links;
}

}  // namespace rehearse::sim
