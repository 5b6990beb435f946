// SPDX-License-Identifier: Apache-2.0
// Ways around links that have failed.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "core/error.hpp"
#include "core/index.hpp"
#include "sim/network/wiring.hpp"

namespace rehearse::sim {

namespace {

// The kind's links that a failed directed link takes with it, by its number in the node: itself, both ways, or all that
// lead to its NIC.
std::set<std::int64_t> lost_with(const NodeKind& kind, std::int64_t link) {
    const std::int64_t inside = 2 * std::ssize(kind.links);
    if (link < inside) return {link / 2};
    std::vector<int> nics;
    for (int v = 0; v < std::ssize(kind.vertices); ++v) {
        if (kind.vertices[at(v)].kind == VertexKind::nic) nics.push_back(v);
    }
    const int nic = nics.at(at((link - inside) / 2));
    std::set<std::int64_t> lost;
    for (std::int64_t i = 0; i < std::ssize(kind.links); ++i) {
        if (kind.links[at(i)].a == nic || kind.links[at(i)].b == nic) lost.insert(i);
    }
    return lost;
}

}  // namespace

void Wiring::go_around_failed() {
    std::map<std::int64_t, std::set<std::int64_t>> lost;  // links of the kind, by node
    for (const auto& [id, share] : shares_) {
        if (share > 0) continue;
        if (id >= first_switch_link_) {
            switch_links_fail_ = true;
            continue;
        }
        std::size_t k = kinds_.size() - 1;
        while (id < kinds_[k].first_link) --k;
        const std::int64_t number = id - kinds_[k].first_link;
        lost[kinds_[k].first_node + number / kinds_[k].links].merge(
            lost_with(machine_.nodes[k], number % kinds_[k].links));
    }
    for (const auto& [node, links] : lost) {
        const auto kind = std::ranges::find_if(kinds_, [&](const Kind& k) { return node < k.end_node; });
        try {
            paths_.emplace(node, NodePaths{machine_.nodes[at(kind - kinds_.begin())], inside_rate(), stretch_inside_,
                                           forwards(), links});
        } catch (const InputError& error) {
            throw InputError(fmt::format("node{} without what has failed: {}", node, error.what()));
        }
    }
}

const NodePaths& Wiring::paths_of(const Place& place) const {
    if (paths_.empty()) return place.kind->paths;
    const auto own = paths_.find(place.node);
    return own == paths_.end() ? place.kind->paths : own->second;
}

bool Wiring::crosses_failed(std::span<const Hop> hops) const {
    return std::ranges::any_of(hops, [&](const Hop& hop) {
        const auto share = shares_.find(first_switch_link_ + hop.link);
        return share != shares_.end() && share->second == 0;
    });
}

int Wiring::cross(End from, End to, std::vector<Hop>& hops) const {
    const auto cross_to = [&](End a, End b, std::vector<Hop>& into) {
        return std::visit([&](const auto& s) { return s.route(a, b, into); }, switches_);
    };
    const std::size_t before = hops.size();
    const int straight = cross_to(from, to, hops);
    if (!switch_links_fail_ || !crosses_failed(std::span{hops}.subspan(before))) return straight;
    std::size_t failed = before;
    while (!crosses_failed({&hops[failed], 1})) ++failed;
    const std::int64_t lost = hops[failed].link;
    hops.resize(before);
    int passed = 0;
    std::vector<Hop> best, tried;
    for (std::int64_t by = 0; by < node_count(machine_); ++by) {
        if (by == from.node || by == to.node) continue;
        tried.clear();
        const int switches = cross_to(from, {by, from.nic}, tried) + cross_to({by, from.nic}, to, tried) - 1;
        if ((passed > 0 && switches >= passed) || crosses_failed(tried)) continue;
        passed = switches;
        best = tried;
    }
    if (passed == 0) {
        throw InputError(
            fmt::format("machine '{}': link '{}' has failed and no way leads around it; a link of a fat tree is "
                        "all cables of its switch: write a share above 0 for those that are left",
                        machine_.name, sound_link(first_switch_link_ + lost).name));
    }
    hops.insert(hops.end(), best.begin(), best.end());
    return passed;
}

}  // namespace rehearse::sim
