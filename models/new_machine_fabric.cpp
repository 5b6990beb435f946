// SPDX-License-Identifier: Apache-2.0
// What ibnetdiscover tells of the switches between nodes: a tree, rails of one, or dragonfly+.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "core/error.hpp"
#include "models/ibnet_text.hpp"
#include "models/new_machine.hpp"

namespace rehearse::models {

namespace {

constexpr const char* tool = "ibnetdiscover";

using ibnet::Switch;
using ibnet::Text;

/// Which node a port belongs to and which of its cards it is, where the adapters' descriptions say so: "node7 mlx5_2"
/// begins with the node, and all nodes have as many cards. Empty: they don't.
using Places = std::map<std::string, std::pair<std::string, std::int64_t>>;
Places places_of(const Text& text) {
    using Card = std::tuple<std::size_t, std::string, std::string>;  // short names first: mlx5_2 before mlx5_10
    std::map<std::string, std::set<Card>> nodes;
    for (const std::string& card : text.cards) {
        const auto said = text.described.find(card.substr(0, card.find(':')));
        if (said == text.described.end()) return {};
        const std::size_t space = said->second.find(' ');
        if (space == std::string::npos) return {};
        const std::string device = said->second.substr(space + 1);
        nodes[said->second.substr(0, space)].insert({device.size(), device, card});
    }
    Places places;
    for (const auto& [node, cards] : nodes) {
        if (cards.size() != nodes.begin()->second.size()) return {};
        std::int64_t index = 0;
        for (const Card& card : cards) places[std::get<2>(card)] = {node, index++};
    }
    return places;
}

using Names = std::vector<std::string>;

/// Sets of switches that are joined with each other, by links that `counts` lets through.
template <typename Counts>
std::vector<std::set<std::string>> components(const Text& text, const Counts& counts) {
    std::vector<std::set<std::string>> found;
    std::set<std::string> seen;
    for (const auto& [name, ignored] : text.switches) {
        if (seen.contains(name)) continue;
        Names open{name};
        std::set<std::string> all{name};
        while (!open.empty()) {
            const std::string at = open.back();
            open.pop_back();
            for (const auto& [other, trunk] : text.switches.at(at).others) {
                if (text.switches.contains(other) && counts(at, other) && all.insert(other).second)
                    open.push_back(other);
            }
        }
        seen.insert(all.begin(), all.end());
        found.push_back(std::move(all));
    }
    return found;
}

/// Switches as the roles that they have: a leaf has hosts, a spine is joined to a leaf, a core is neither.
class Roles {
public:
    explicit Roles(const Text& text) : text_(text) {
        for (const auto& [name, each] : text.switches) {
            if (!each.cards.empty()) leaves_.push_back(name);
        }
        groups_ = components(text, [&](const std::string& a, const std::string& b) { return leaf(a) != leaf(b); });
        // A switch that no leaf is joined to stands alone.
        std::erase_if(groups_, [&](const auto& group) {
            return std::ranges::none_of(group, [&](const auto& s) { return leaf(s); });
        });
        for (std::size_t g = 0; g < groups_.size(); ++g) {
            for (const std::string& name : groups_[g]) group_[name] = static_cast<std::int64_t>(g);
        }
    }
    bool leaf(const std::string& name) const { return !text_.switches.at(name).cards.empty(); }
    const Names& leaves() const { return leaves_; }
    std::int64_t groups() const { return std::ssize(groups_); }
    std::int64_t leaves_of_a_group() const { return (std::ssize(leaves_) + groups() - 1) / groups(); }
    /// -1: a core.
    std::int64_t group(const std::string& name) const {
        const auto found = group_.find(name);
        return found == group_.end() ? -1 : found->second;
    }

private:
    const Text& text_;
    Names leaves_;
    std::vector<std::set<std::string>> groups_;
    std::map<std::string, std::int64_t> group_;
};

std::int64_t most_cards(const Text& text) {
    std::size_t most = 0;
    for (const auto& [name, each] : text.switches) most = std::max(most, each.cards.size());
    return static_cast<std::int64_t>(most);
}

/// Ports down over ports up of the switches for which `below` and `above` count their ports.
template <typename Below, typename Above>
double taper(const Text& text, const Below& below, const Above& above) {
    double down = 0, up = 0;
    for (const auto& [name, each] : text.switches) {
        down += below(name, each);
        up += above(name, each);
    }
    return up > 0 ? std::max(1.0, std::round(100 * down / up) / 100) : 1;
}

/// Groups of leaves and spines whose spines are joined to those of every other group, and to no further switch.
std::optional<NewMachine::Groups> groups_of(const Text& text, const Roles& roles, std::int64_t nodes_of_a_leaf) {
    if (roles.groups() < 2) return std::nullopt;
    std::map<std::pair<std::int64_t, std::int64_t>, double> between;
    double up = 0;
    for (const auto& [name, each] : text.switches) {
        const std::int64_t from = roles.group(name);
        if (from < 0) return std::nullopt;
        for (const auto& [other, trunk] : each.others) {
            if (!text.switches.contains(other)) continue;
            const std::int64_t to = roles.group(other);
            if (to != from) between[std::pair{from, to}] += trunk.rate;
            if (to == from && roles.leaf(name)) up += trunk.rate;
        }
    }
    const std::int64_t n = roles.groups();
    if (std::ssize(between) != n * (n - 1)) return std::nullopt;
    double global = 0;
    for (const auto& [pair, rate] : between) global += rate;
    if (!(global > 0) || !(up > 0)) return std::nullopt;
    return NewMachine::Groups{
        n,
        roles.leaves_of_a_group(),
        nodes_of_a_leaf,
        {Bandwidth{up / static_cast<double>(std::ssize(roles.leaves()))}, tool},
        {Bandwidth{global / static_cast<double>(n * (n - 1))}, fmt::format("{}: mean of all pairs of groups", tool)}};
}

/// How many of a node's cards, each with leaves of its own, where that is so for all; 1: cards share leaves.
std::int64_t rails_of(const Text& text, const Places& places) {
    std::int64_t cards = 0;
    for (const auto& [card, place] : places) cards = std::max(cards, place.second + 1);
    for (const auto& [name, each] : text.switches) {
        std::set<std::int64_t> here;
        for (const std::string& card : each.cards) here.insert(places.contains(card) ? places.at(card).second : -1);
        if (here.size() > 1) return 1;
    }
    return std::max<std::int64_t>(1, cards);
}

/// Whether a way leads from a leaf of one card to one of another.
bool joined(const Text& text, const Places& places) {
    for (const std::set<std::string>& part : components(text, [](const auto&, const auto&) { return true; })) {
        std::set<std::int64_t> here;
        for (const std::string& name : part) {
            for (const std::string& card : text.switches.at(name).cards) here.insert(places.at(card).second);
        }
        if (here.size() > 1) return true;
    }
    return false;
}

void take_tree(NewMachine& machine, const Text& text, const Roles& roles, std::int64_t below, std::int64_t rails) {
    const std::int64_t leaves = std::max<std::int64_t>(1, std::ssize(roles.leaves()) / rails);
    const bool three_levels = std::ranges::any_of(
        text.switches, [&](const auto& each) { return !roles.leaf(each.first) && roles.group(each.first) < 0; });
    const double first = taper(
        text, [](const auto&, const Switch& each) { return static_cast<double>(each.cards.size()); },
        [&](const std::string& name, const Switch& each) {
            double ports = 0;
            for (const auto& [other, trunk] : each.others)
                ports += roles.leaf(name) ? static_cast<double>(trunk.ports) : 0;
            return ports;
        });
    machine.tree = {{below}, tool};
    machine.taper = {first};
    // Rails that the last level joins: one leaf a rail still has switches above it.
    const bool above = leaves > 1 || machine.rails == NewMachine::Rails::joined;
    if (three_levels && roles.groups() > 1 && rails == 1) {
        const auto spine = [&](const std::string& name) { return !roles.leaf(name) && roles.group(name) >= 0; };
        const auto ports = [&](bool down) {
            return [&, down](const std::string& name, const Switch& each) {
                double count = 0;
                for (const auto& [other, trunk] : each.others) {
                    if (spine(name) && text.switches.contains(other) && roles.leaf(other) == down)
                        count += static_cast<double>(trunk.ports);
                }
                return count;
            };
        };
        machine.tree.value = {below, roles.leaves_of_a_group(), roles.groups()};
        machine.taper = {first, taper(text, ports(true), ports(false)), 1};
    } else if (above) {
        machine.tree.value.push_back(leaves);
        machine.taper.push_back(1);
    }
    if (machine.tree.value.size() == 1 && machine.rails == NewMachine::Rails::none) {
        machine.tree.value.clear();
        machine.taper.clear();
    }
}

}  // namespace

NewMachine with_ibnetdiscover(NewMachine machine, std::string_view text_of_tool, const std::string& origin) {
    const Text text = ibnet::parse(text_of_tool, origin);
    const Roles roles{text};
    if (roles.leaves().empty())
        throw InputError(fmt::format("{}: no switch with a host: right would be the text of ibnetdiscover", origin));
    if (text.rate > 0) machine.nic = {Bandwidth{text.rate}, tool};
    const Places places = places_of(text);
    std::set<std::string> nodes;
    for (const auto& [card, place] : places) nodes.insert(place.first);
    if (!nodes.empty() && machine.nics.source.empty())
        machine.nics = {std::ssize(text.cards) / std::ssize(nodes), tool};
    const std::int64_t each = std::max<std::int64_t>(1, machine.nics.value);
    machine.nodes =
        std::max(machine.nodes, nodes.empty() ? (std::ssize(text.cards) + each - 1) / each : std::ssize(nodes));
    const std::int64_t rails = places.empty() ? 1 : rails_of(text, places);
    machine.rails = rails == 1             ? NewMachine::Rails::none
                    : joined(text, places) ? NewMachine::Rails::joined
                                           : NewMachine::Rails::separate;
    // Nodes of a leaf: its cards over those that a node has there.
    const std::int64_t below = std::max<std::int64_t>(1, most_cards(text) / (rails > 1 ? 1 : each));
    machine.groups = rails > 1 ? std::nullopt : groups_of(text, roles, below);
    machine.tree = {};
    machine.taper.clear();
    if (!machine.groups) take_tree(machine, text, roles, below, rails);
    return machine;
}

}  // namespace rehearse::models
