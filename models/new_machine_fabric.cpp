// SPDX-License-Identifier: Apache-2.0
// What ibnetdiscover tells of the switches between nodes: a tree, rails of one, or dragonfly+.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "core/error.hpp"
#include "core/quoting.hpp"
#include "models/ibnet_roles.hpp"
#include "models/ibnet_text.hpp"
#include "models/new_machine.hpp"

namespace rehearse::models {

namespace {

constexpr const char* tool = "ibnetdiscover";

using ibnet::components;
using ibnet::most_cards;
using ibnet::Nodes;
using ibnet::Roles;
using ibnet::Switch;
using ibnet::taper;
using ibnet::Text;

/// Which node a port belongs to and which of its cards it is. Empty: the descriptions don't say it.
using Places = std::map<std::string, std::pair<std::string, std::int64_t>>;

std::string ports_text(std::int64_t count) { return fmt::format("{} port{}", count, count == 1 ? "" : "s"); }

/// Some of the names, and how many there are.
std::string listed(const std::vector<std::string>& names) {
    constexpr std::size_t enough = 3;
    std::vector<std::string> some;
    for (std::size_t i = 0; i < std::min(names.size(), enough); ++i) some.push_back(printable(names[i]));
    return fmt::format("{}{}", fmt::join(some, ", "),
                       names.size() > enough ? fmt::format(" and {} more", names.size() - enough) : "");
}

/// The key of the largest count, of equals the largest key.
template <typename Key, typename Count>
Key most_frequent(const std::map<Key, Count>& counts) {
    const auto less = [](const auto& a, const auto& b) { return a.second < b.second; };
    return std::max_element(counts.rbegin(), counts.rend(), less)->first;
}

/// How many ports the nodes have that are kept: as many as the user said where some have them, else as most ports'
/// have.
std::size_t ports_of_a_node(const Nodes& nodes, const Answer<std::int64_t>& nics) {
    std::map<std::size_t, std::size_t> ports;  // in all, by how many a node has
    for (const auto& [node, each] : nodes.ports) ports[each.size()] += each.size();
    const auto told = static_cast<std::size_t>(nics.value);
    if (!nics.source.empty() && ports.contains(told)) return told;
    return most_frequent(ports);
}

/// Of the nodes that have as many cards as each other; the others, which log in or store, leave the text with a note.
Places places_of(Text& text, NewMachine& machine) {
    const Nodes nodes = nodes_of(text);
    if (nodes.unnamed == std::ssize(text.cards)) {
        const std::string count = machine.nics.source.empty()
                                      ? "each is counted as a node; --nics N says how many a node has"
                                      : fmt::format("a node is taken to have {}", machine.nics.value);
        machine.notes.push_back(fmt::format("{}: the descriptions of {} do not say of which nodes they are: {}", tool,
                                            ports_text(nodes.unnamed), count));
        return {};
    }
    const std::size_t each = ports_of_a_node(nodes, machine.nics);
    Places places;
    std::set<std::string> others;
    std::vector<std::string> names;
    for (const auto& [node, ports] : nodes.ports) {
        if (ports.size() != each) {
            names.push_back(node);
            others.insert(ports.begin(), ports.end());
            continue;
        }
        for (std::size_t i = 0; i < each; ++i) places[ports[i]] = {node, static_cast<std::int64_t>(i)};
    }
    if (others.empty()) return places;
    take_away(text, others);
    machine.notes.push_back(fmt::format("{}: {} with {} in all left out, as the other {} nodes have {} each (--nics N)",
                                        tool, listed(names), ports_text(std::ssize(others)),
                                        std::ssize(nodes.ports) - std::ssize(names),
                                        ports_text(static_cast<std::int64_t>(each))));
    return places;
}

/// The rate that most of the hosts' ports have; 0 where no line says one.
double rate_of_ports(const Text& text, NewMachine& machine) {
    std::map<double, std::int64_t> counts;
    for (const auto& [name, card] : text.cards) {
        if (card.rate > 0) ++counts[card.rate];
    }
    if (!text.unknown_rates.empty())
        machine.notes.push_back(fmt::format("{}: no known rate of a port: {}", tool,
                                            listed({text.unknown_rates.begin(), text.unknown_rates.end()})));
    if (counts.empty()) return 0;
    const double rate = most_frequent(counts);
    if (counts.size() > 1)
        machine.notes.push_back(fmt::format("{}: of {} {} run at {}, the others at other rates", tool,
                                            ports_text(std::ssize(text.cards)), counts[rate],
                                            to_string(Bandwidth{rate})));
    return rate;
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

/// What links carry: their rates where the text says one of each, else how many ports they are.
class Widths {
public:
    explicit Widths(const Text& text) : text_(text) {
        by_rate_ = std::ranges::all_of(text.cards, [](const auto& each) { return each.second.rate > 0; });
        for (const auto& [name, each] : text.switches) {
            for (const auto& [other, trunk] : each.others) by_rate_ = by_rate_ && trunk.unknown == 0;
        }
    }
    double of(const ibnet::Trunk& trunk) const { return by_rate_ ? trunk.rate : static_cast<double>(trunk.ports); }
    double of_cards(const Switch& each) const {
        double sum = 0;
        for (const std::string& card : each.cards) sum += by_rate_ ? text_.cards.at(card).rate : 1;
        return sum;
    }

private:
    const Text& text_;
    bool by_rate_ = true;
};

void take_tree(NewMachine& machine, const Text& text, const Roles& roles, std::int64_t below, std::int64_t rails) {
    const std::int64_t leaves = std::max<std::int64_t>(1, std::ssize(roles.leaves()) / rails);
    const bool three_levels = std::ranges::any_of(
        text.switches, [&](const auto& each) { return !roles.leaf(each.first) && roles.group(each.first) < 0; });
    const Widths width{text};
    const double first = taper(
        text, [&](const auto&, const Switch& each) { return width.of_cards(each); },
        [&](const std::string& name, const Switch& each) {
            double up = 0;
            for (const auto& [other, trunk] : each.others) up += roles.leaf(name) ? width.of(trunk) : 0;
            return up;
        });
    machine.tree = {{below}, tool};
    machine.taper = {first};
    machine.taper_source = tool;
    // Rails that the last level joins: one leaf a rail still has switches above it.
    const bool above = leaves > 1 || machine.rails == NewMachine::Rails::joined;
    if (three_levels && roles.groups() > 1 && rails == 1) {
        const auto spine = [&](const std::string& name) { return !roles.leaf(name) && roles.group(name) >= 0; };
        const auto links = [&](bool down) {
            return [&, down](const std::string& name, const Switch& each) {
                double sum = 0;
                for (const auto& [other, trunk] : each.others) {
                    if (spine(name) && text.switches.contains(other) && roles.leaf(other) == down)
                        sum += width.of(trunk);
                }
                return sum;
            };
        };
        machine.tree.value = {below, roles.leaves_of_a_group(), roles.groups()};
        machine.taper = {first, taper(text, links(true), links(false)), 1};
    } else if (above) {
        machine.tree.value.push_back(leaves);
        machine.taper.push_back(1);
    }
    machine.taper.back() = 1;  // nothing is above the last level
    if (machine.tree.value.size() == 1 && machine.rails == NewMachine::Rails::none) {
        machine.tree.value.clear();
        machine.taper.clear();
    }
}

}  // namespace

NewMachine with_ibnetdiscover(NewMachine machine, std::string_view text_of_tool, const std::string& origin) {
    Text text = ibnet::parse(text_of_tool, origin);
    if (text.cards.empty())
        throw InputError(fmt::format("{}: no switch with a host: right would be the text of ibnetdiscover", origin));
    const Places places = places_of(text, machine);
    const Roles roles{text};
    if (const double rate = rate_of_ports(text, machine); rate > 0) machine.nic = {Bandwidth{rate}, tool};
    std::set<std::string> nodes;
    for (const auto& [card, place] : places) nodes.insert(place.first);
    const std::int64_t of_a_node = nodes.empty() ? machine.nics.value : std::ssize(places) / std::ssize(nodes);
    const std::int64_t each = std::max<std::int64_t>(1, of_a_node);
    if (!nodes.empty() && machine.nics.source.empty()) machine.nics = {each, tool};
    if (machine.nics.value != each)
        machine.notes.push_back(fmt::format("{}: {} of each node, though a node has {} network cards by {}", tool,
                                            ports_text(each), machine.nics.value, machine.nics.source));
    const std::int64_t found = nodes.empty() ? (std::ssize(text.cards) + each - 1) / each : std::ssize(nodes);
    if (machine.nodes.source.empty()) machine.nodes = {found, tool};
    if (machine.nodes.value != found)
        machine.notes.push_back(
            fmt::format("{}: {} nodes, of which {} are taken as told", tool, found, machine.nodes.value));
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
