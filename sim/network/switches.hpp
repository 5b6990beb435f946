// SPDX-License-Identifier: Apache-2.0
// What lies between the NICs: each topology numbers its own links from 0 and routes from node to node by arithmetic, so
// that nothing is stored a node or a pair.
#pragma once

#include <span>
#include <variant>
#include <vector>

#include "core/machine.hpp"
#include "sim/network/hop.hpp"

namespace rehearse::sim {

/// Where a message leaves a node or comes into one.
struct End {
    std::int64_t node = 0;
    int nic = 0;  // of the node's
};

/// One switch, no links of its own: only NIC links limit.
struct StarSwitch {
    std::int64_t link_count() const { return 0; }
    Link link(std::int64_t) const { return {}; }
    std::int64_t alike(std::int64_t) const { return 0; }
    int route(End, End, std::vector<Hop>&) const { return 1; }
    int passed(End, End) const { return 1; }
    void from_top(std::int64_t, bool, std::vector<Hop>&) const {}
    bool never_limits() const { return true; }
    void spread(std::span<Hop>, std::int64_t, std::span<const double>) const {}
};

/// Climbs to the lowest common ancestor and down again. Cable c of switch s is link 2 (f + s c' + c) on the way up and
/// the next one on the way down to it, where f are the cables of the levels below and c' those of a switch of its
/// level; switches are counted level after level, those of a level rail after rail. Without static routing a switch has
/// one cable. A message takes cable d modulo c', where d is the number of the card that it goes to (d-mod-k, Zahavi
/// 2010).
class FatTreeSwitches {
public:
    /// `nics` of a node, of so much bandwidth each.
    FatTreeSwitches(const FatTree& tree, std::int64_t nodes, std::int64_t nics, Bandwidth nic);
    std::int64_t link_count() const;
    Link link(std::int64_t id) const;
    std::int64_t alike(std::int64_t id) const;
    int route(End from, End to, std::vector<Hop>& hops) const;
    int passed(End from, End to) const;
    /// The links between the top of the tree and a node's switch, down or up.
    void from_top(std::int64_t node, bool down, std::vector<Hop>& hops) const;
    /// No level is tapered: a switch sends up all that the NICs under it can bring, so that these are the bottleneck.
    bool never_limits() const { return !limits_; }
    void spread(std::span<Hop>, std::int64_t, std::span<const double>) const {}

private:
    struct Level {
        std::int64_t below = 1;     // nodes under one switch
        std::int64_t ports = 1;     // of one switch, down
        std::int64_t switches = 1;  // of a rail
        std::int64_t cables = 1;    // of one switch, up
        std::int64_t first_cable = 0;
        Bandwidth up;  // of a cable
        PerByte cost;
    };
    std::size_t level_of(std::int64_t id) const;
    std::size_t top_of(End from, End to) const;
    std::int64_t cable(std::size_t level, std::int64_t node, End at) const;

    std::vector<Level> levels_;
    std::int64_t nics_ = 1;  // that tell cables apart: of a node, or 1 of each rail
    std::int64_t rails_ = 1;
    bool limits_ = false;
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
    int route(End from, End to, std::vector<Hop>& hops) const;
    int passed(End from, End to) const;
    void from_top(std::int64_t, bool, std::vector<Hop>&) const {}
    bool never_limits() const { return false; }
    void spread(std::span<Hop>, std::int64_t, std::span<const double>) const {}

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
    int route(End from, End to, std::vector<Hop>& hops) const;
    int passed(End from, End to) const;
    void from_top(std::int64_t, bool, std::vector<Hop>&) const {}
    bool never_limits() const { return false; }
    void spread(std::span<Hop>, std::int64_t, std::span<const double>) const {}

private:
    std::vector<std::int64_t> dims_;
    std::vector<std::int64_t> strides_;  // the last dimension varies fastest
    Bandwidth link_;
};

/// Groups of routers (or of leaf switches), the groups joined all to all, by adaptive routing or minimal one.
///
/// In folded mode messages that start together leave each other what `busiest_links` says: one link stands for all ways
/// between two groups (of a dragonfly: two routers of a group, too), and how many seconds a byte takes there depends on
/// them (`spread`). Links that all of a group's or a router's messages share hold apart what does not start together.
/// Between groups, a message's way to the router that has its cable, and from it, is spread evenly over the group's
/// routers; a detour's way inside the third group is taken to be free. In exact mode every piece of a message takes one
/// of the `Ways`, of single links.
class AdaptiveSwitches {
public:
    AdaptiveSwitches(const Dragonfly& dragonfly, double scale);
    AdaptiveSwitches(const DragonflyPlus& dragonfly, double scale);
    std::int64_t link_count() const { return single_router_ + (all_to_all_ ? groups_ * routers_ * routers_ : 0); }
    Link link(std::int64_t id) const;
    std::int64_t alike(std::int64_t id) const;
    int route(End from, End to, std::vector<Hop>& hops) const;
    int passed(End from, End to) const;
    void from_top(std::int64_t, bool, std::vector<Hop>&) const {}
    bool never_limits() const { return false; }
    /// Of the messages that cross the hops, whose links are numbered from `first` on: what each takes on links that
    /// stand for several ways. `weights` of the hops' messages; empty: all are equal.
    void spread(std::span<Hop> hops, std::int64_t first, std::span<const double> weights) const;
    bool adaptive() const { return adaptive_; }

    /// Two places that are joined, and all others by which a message may go: links from place to place are `first` +
    /// from * size + to.
    struct Choice {
        std::int64_t first = 0, size = 0, from = 0, to = 0;
    };
    /// Between two nodes: the hops that every way has, and what there is to choose between, one after the other. Where
    /// `from` is no place (-1), any router of a group may be the one that the message leaves by, and for `to` enters
    /// by.
    struct Ways {
        std::vector<Hop> hops;
        std::vector<Choice> choices;
    };
    Ways ways(std::int64_t from, std::int64_t to) const;

private:
    AdaptiveSwitches(std::int64_t groups, std::int64_t routers, std::int64_t nodes);
    void number();
    void spread_groups(std::span<Hop> hops, std::int64_t first, std::span<const double> weights) const;
    void spread_routers(std::span<Hop> hops, std::int64_t first, std::span<const double> weights) const;

    std::int64_t groups_, routers_, nodes_;
    bool adaptive_ = true, all_to_all_ = true;  // ; routers of a group are joined with each other
    Bandwidth pair_, global_, group_, local_, router_, routers_pair_;
    // First numbers: a pair of groups is number groups * from + to; a group's links out and in; a router's out and in;
    // pairs of routers of a group; single links between groups, and between routers.
    std::int64_t out_of_group_ = 0, out_of_router_ = 0, router_pairs_ = 0, single_group_ = 0, single_router_ = 0;
};

/// `link_count`, `link` for people and SimGrid, `alike` (a link of the same level or direction), and `route`, which
/// appends the hops between the switches of two different nodes and returns the number of switches `passed`. `from_top`
/// appends those between the top of a tree and one node; nothing where there is no top.
/// `spread`: what single links take of messages that start together. `never_limits`: wherever messages go, NICs hold
/// them up at least as much as these links.
using Switches = std::variant<StarSwitch, FatTreeSwitches, DragonflySwitches, TorusSwitches, AdaptiveSwitches>;

/// Bandwidths are multiplied by `scale`. `nics` is that of a node. InputError when the topology has fewer places than
/// the machine has nodes, or a figure is missing.
Switches make_switches(const Machine& machine, std::int64_t nics, double scale);

}  // namespace rehearse::sim
