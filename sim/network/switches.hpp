// SPDX-License-Identifier: Apache-2.0
// What lies between the NICs: each topology numbers its own links from 0 and routes from node to node by arithmetic, so
// that nothing is stored a node or a pair.
#pragma once

#include <variant>
#include <vector>

#include "core/machine.hpp"
#include "sim/network/hop.hpp"

namespace rehearse::sim {

/// One switch, no links of its own: only NIC links limit.
struct StarSwitch {
    std::int64_t link_count() const { return 0; }
    Link link(std::int64_t) const { return {}; }
    std::int64_t alike(std::int64_t) const { return 0; }
    int route(std::int64_t, std::int64_t, std::vector<Hop>&) const { return 1; }
    int passed(std::int64_t, std::int64_t) const { return 1; }
    void from_top(std::int64_t, bool, std::vector<Hop>&) const {}
    bool never_limits() const { return true; }
};

/// Climbs to the lowest common ancestor and down again. Link 2 s is the way up from switch s, 2 s + 1 the way down to
/// it; switches are counted level after level.
class FatTreeSwitches {
public:
    FatTreeSwitches(const FatTree& tree, std::int64_t nodes, Bandwidth node_bandwidth);
    std::int64_t link_count() const;
    Link link(std::int64_t id) const;
    std::int64_t alike(std::int64_t id) const;
    int route(std::int64_t from, std::int64_t to, std::vector<Hop>& hops) const;
    int passed(std::int64_t from, std::int64_t to) const;
    /// The links between the top of the tree and a node's switch, down or up.
    void from_top(std::int64_t node, bool down, std::vector<Hop>& hops) const;
    /// No level is tapered: a switch sends up all that the NICs under it can bring, so that these are the bottleneck.
    bool never_limits() const { return !tapered_; }

private:
    struct Level {
        std::int64_t below = 1;  // nodes under one switch
        std::int64_t ports = 1;  // of one switch, down
        std::int64_t switches = 1;
        std::int64_t first_switch = 0;  // number of the level's first one
        Bandwidth up;
        PerByte cost;
    };
    std::vector<Level> levels_;
    bool tapered_ = false;
};

/// At most one local link, one global link, one local link. A pair of groups has many global cables, spread over the
/// routers: the message leaves its group by the router whose number is (destination group + destination router) modulo
/// routers, and enters the other by (source group + source router). Local link ((g R) + a) R + b goes from router a to
/// router b of group g; then come the global links, g G + h from group g to group h.
class DragonflySwitches {
public:
    DragonflySwitches(const Dragonfly& dragonfly, double scale);
    std::int64_t link_count() const { return first_global_ + groups_ * groups_; }
    Link link(std::int64_t id) const;
    std::int64_t alike(std::int64_t id) const;
    int route(std::int64_t from, std::int64_t to, std::vector<Hop>& hops) const;
    int passed(std::int64_t from, std::int64_t to) const;
    void from_top(std::int64_t, bool, std::vector<Hop>&) const {}
    bool never_limits() const { return false; }

private:
    std::int64_t groups_, routers_, nodes_, first_global_;
    Bandwidth local_, global_;
};

/// Dimension after dimension, each the shorter way round; where both are equally long, even coordinates go up and odd
/// ones down. Link (node D + d) 2 goes to the next node in dimension d, the one after it to the previous.
class TorusSwitches {
public:
    TorusSwitches(const Torus& torus, double scale);
    std::int64_t link_count() const;
    Link link(std::int64_t id) const;
    std::int64_t alike(std::int64_t id) const;
    int route(std::int64_t from, std::int64_t to, std::vector<Hop>& hops) const;
    int passed(std::int64_t from, std::int64_t to) const;
    void from_top(std::int64_t, bool, std::vector<Hop>&) const {}
    bool never_limits() const { return false; }

private:
    std::vector<std::int64_t> dims_;
    std::vector<std::int64_t> strides_;  // the last dimension varies fastest
    Bandwidth link_;
};

/// `link_count`, `link` for people and SimGrid, `alike` (a link of the same level or direction), and `route`, which
/// appends the hops between the switches of two different nodes and returns the number of switches `passed`. `from_top`
/// appends those between the top of a tree and one node; nothing where there is no top.
/// `never_limits`: wherever messages go, NICs hold them up at least as much as these links.
using Switches = std::variant<StarSwitch, FatTreeSwitches, DragonflySwitches, TorusSwitches>;

/// Bandwidths are multiplied by `scale`. `nics` is that of a node. InputError when the topology has fewer places than
/// the machine has nodes, or a figure is missing.
Switches make_switches(const Machine& machine, std::int64_t nics, double scale);

}  // namespace rehearse::sim
