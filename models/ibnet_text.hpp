// SPDX-License-Identifier: Apache-2.0
// The text of ibnetdiscover as switches, the hosts' ports below them and what joins them.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace rehearse::models::ibnet {

/// What leads from a switch to another: ports, and what they carry together in bytes a second.
struct Trunk {
    std::int64_t ports = 0, unknown = 0;  // unknown: ports of which the text says no rate that is known
    double rate = 0;
};
struct Switch {
    std::set<std::string> cards;          // "H-...:1", a port of an adapter
    std::map<std::string, Trunk> others;  // by the other's name
};
struct Card {
    std::string adapter;  // "H-..."
    double rate = 0;      // bytes a second; 0 where the line says none that is known
};
struct Text {
    std::map<std::string, Switch> switches;
    std::map<std::string, Card> cards;             // of hosts alone: a switch's own aggregation node (SHARP) is none
    std::map<std::string, std::string> described;  // what is said of an adapter: "node7 mlx5_2"
    std::set<std::string> unknown_rates;           // of the lines' ends: "4xZDR"
};

/// InputError with `origin` and the line of what has no name.
Text parse(std::string_view text, const std::string& origin);

/// Hosts by what the adapters' descriptions say: "node7 mlx5_2" begins with the node.
struct Nodes {
    std::map<std::string, std::vector<std::string>> ports;  // by the node, in the order of its cards
    std::int64_t unnamed = 0;  // ports of adapters whose descriptions name none: a node each, by the port's name
};
/// A description names a node unless it is the vendor's own or several adapters have the same.
Nodes nodes_of(const Text& text);

/// Takes ports of hosts away, and leaf switches that have none left with what leads to them.
void take_away(Text& text, const std::set<std::string>& ports);

/// Bytes a second of "4xNDR", a width and a speed as ibnetdiscover writes them: data rates of the InfiniBand trade
/// association. 0 for words that are none.
double rate_of(std::string_view word);

}  // namespace rehearse::models::ibnet
