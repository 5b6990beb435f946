// SPDX-License-Identifier: Apache-2.0
// The text of ibnetdiscover as switches, the hosts' ports below them and what joins them.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>

namespace rehearse::models::ibnet {

/// What leads from a switch to another: ports, and what they carry together in bytes a second.
struct Trunk {
    std::int64_t ports = 0;
    double rate = 0;
};
struct Switch {
    std::set<std::string> cards;          // "H-...:1", a port of an adapter
    std::map<std::string, Trunk> others;  // by the other's name
};
struct Text {
    std::map<std::string, Switch> switches;
    std::set<std::string> cards;
    std::map<std::string, std::string> described;  // what is said of an adapter: "node7 mlx5_2"
    double rate = 0;                               // of a host's port
};

/// InputError with `origin` and the line of what has no name.
Text parse(std::string_view text, const std::string& origin);

}  // namespace rehearse::models::ibnet
