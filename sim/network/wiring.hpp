// SPDX-License-Identifier: Apache-2.0
// A machine as directed links and routes over them, computed by arithmetic: nothing is stored a device or a pair, so a
// machine of a million devices costs as much to build as one of two.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "core/machine.hpp"
#include "prices/prices.hpp"
#include "sim/host/pace.hpp"
#include "sim/network/hop.hpp"
#include "sim/network/node_paths.hpp"
#include "sim/network/switches.hpp"

namespace rehearse::sim {

/// A route runs from the device over the shortest path to its own NIC, one of the nearest (sim/network/node_paths.hpp;
/// several take turns by the number of the node at the other end), through the fabric, and in from the other device's
/// own NIC. Links inside a node carry Messaging::fraction of `inside` of their bandwidth, the others that of `across`.
/// The latency is that of the links, the fabric's and its further switches', and the software's overhead. Where a link
/// has failed, a node's messages take the next nearest way or NIC, and the fabric's go by the switches of a third node:
/// the one that makes the shortest way.
/// Large: one numbering of all links, about which each question of routes, rates and likeness is a method.
class Wiring {
public:
    /// Keeps a reference to the machine. The z_score stretches every time (of its messages) by its error. InputError
    /// when a figure is missing or out of range, or nodes of several have no NIC.
    /// `nodes`: which node of the machine each node of the job is (sim/network/placement.hpp); empty: the same.
    explicit Wiring(const Machine& machine, ZScore z_score = nominal, std::span<const Degraded> degraded = {},
                    std::vector<std::int64_t> nodes = {});

    const Machine& machine() const { return machine_; }
    std::int64_t link_count() const {
        return first_switch_link_ + std::visit([](const auto& s) { return s.link_count(); }, switches_);
    }
    Link link(std::int64_t id) const;
    Link sound_link(std::int64_t id) const;  // as if it were not degraded
    /// The same number for links that are alike: in the same place of a node, a level of a tree, a kind of topology.
    std::int64_t alike(std::int64_t id) const;

    std::int64_t node_of(std::int64_t device) const { return place(device).node; }
    const DeviceClass& device_class(std::int64_t device) const;
    /// Devices with numbers below `end` on the node of this one, itself included.
    std::int64_t node_mates(std::int64_t device, std::int64_t end) const;
    /// Appends the links from one device to another, and returns the latency of a message between them.
    Seconds route(std::int64_t from, std::int64_t to, std::vector<Hop>& hops) const;
    /// The same without links between switches that never hold messages up more than NICs do: all those of a tree that
    /// is not tapered.
    Seconds limiting_route(std::int64_t from, std::int64_t to, std::vector<Hop>& hops) const;
    /// Of messages that start together, all of whose hops these are: what each takes of links between switches that
    /// stand for several ways, which adaptive routing shares out by what else is under way. `weights`: of the hops'
    /// messages; empty: all are of one size. False, and nothing changes, where routing is not adaptive.
    bool spread(std::span<Hop> hops, std::span<const double> weights = {}) const;
    /// Between the switches of two devices' nodes, where routing is adaptive and leaves a choice.
    std::optional<AdaptiveSwitches::Ways> ways(std::int64_t from, std::int64_t to) const;
    bool between_switches(std::int64_t link) const { return link >= first_switch_link_; }
    /// Whether nodes are of one kind and no link in them makes one unlike another.
    bool alike_inside() const { return kinds_.size() == 1 && shares_.empty(); }
    /// Whether nodes are of one kind and no link, in them or between them, makes one unlike another.
    bool nodes_are_alike() const { return alike_inside() && switches_never_limit_; }
    /// Of nodes that are alike: the same number for pairs between whose devices messages cost the same.
    std::int64_t likeness(std::int64_t from_node, std::int64_t to_node) const;
    bool across(std::int64_t from, std::int64_t to) const { return node_of(from) != node_of(to); }
    /// What a message takes besides route()'s latency and bytes x `alone`, its slowest hop: see MessagePiece.
    Seconds beyond(bool across, Bytes bytes, PerByte alone) const;
    /// What the switches of its node do for sums, and at what rate its devices reach each other at nominal prices.
    const SwitchSums& switch_sums(std::int64_t device) const;
    Bandwidth nominal_rate_inside(std::int64_t from, std::int64_t to) const;
    Seconds stretched_inside(Seconds nominal) const { return nominal * stretch_inside_; }
    Seconds stretched_across(Seconds nominal) const { return nominal * stretch_across_; }
    /// What the link carries that joins two devices of a node, degraded or not; 0 where none does, or it has failed.
    Bandwidth direct(std::int64_t from, std::int64_t to) const;
    /// What can leave a device over all its links together, and a node over all its NICs, or come into it; 0 for the
    /// only node.
    Bandwidth egress(std::int64_t device) const;
    Bandwidth node_egress(std::int64_t node) const { return all_nics(node, 0); }
    Bandwidth node_ingress(std::int64_t node) const { return all_nics(node, 1); }
    /// Appends the links between the top of a tree of switches and a node, down to it or up; none in other fabrics.
    void from_top(std::int64_t node, bool down, std::vector<Hop>& hops) const;
    /// What adding a received byte to a buffer costs.
    PerByte combine(std::int64_t from, std::int64_t to) const {
        return node_of(from) == node_of(to) ? combine_inside_ : combine_across_;
    }

private:
    struct Kind {
        std::int64_t first_node = 0, end_node = 0, first_device = 0, end_device = 0, first_link = 0;
        std::int64_t devices = 0, links = 0;  // of one node; links are directed, those of its NICs included
        std::int64_t nic_links = 0;           // NIC n has nic_links + 2 n up and the next one down
        std::int64_t turns = 1;               // nodes after which the NICs that take turns are the same again
        std::vector<int> classes;             // of its devices
        NodePaths paths;
    };
    struct Place {
        const Kind* kind = nullptr;
        std::int64_t node = 0, first_link = 0;
        int device = 0;  // in its node
    };
    Place place(std::int64_t device) const;
    void add_kind(const NodeKind& kind);
    Bandwidth all_nics(std::int64_t node, std::int64_t way) const;
    void slow_degraded(std::span<Hop> hops) const;
    Link node_link(const Kind& kind, std::int64_t id) const;
    double inside_rate() const;  // share of their bandwidth that links inside nodes carry
    Seconds sound_route(std::int64_t from, std::int64_t to, std::vector<Hop>& hops, bool with_switches) const;
    void degrade(const Degraded& degraded);
    void go_around_failed();
    Forwards forwards() const;
    const NodePaths& paths_of(const Place& place) const;
    /// Between switches: appends hops, numbered by the fabric, and returns how many switches were passed.
    int cross(End from, End to, std::vector<Hop>& hops) const;
    const AdaptiveSwitches* adaptive() const;
    /// The device of the sender's node that sends in its place, by its own card on the rail of the receiver's own:
    /// NCCL's PXN, over links between devices alone. -1: none, or none is needed or is the library's way.
    int relay(const Place& from, const Place& to) const;
    /// By which of a device's NICs a message comes in that left its node by this one.
    const NicPath& way_in(const Place& place, std::int64_t from_node, int nic) const;
    void check_rails() const;
    bool crosses_failed(std::span<const Hop> hops) const;
    void complete_placement();
    std::int64_t placed(std::int64_t node) const {
        return node < static_cast<std::int64_t>(nodes_.size()) ? nodes_[static_cast<std::size_t>(node)] : node;
    }

    const Machine& machine_;
    double stretch_inside_, stretch_across_;  // of times, by the z_score
    PerByte nic_cost_, combine_inside_, combine_across_;
    Seconds overhead_inside_, overhead_across_;
    std::vector<Kind> kinds_;
    Switches switches_;
    bool switches_never_limit_ = true;
    std::int64_t first_switch_link_ = 0;
    std::unordered_map<std::int64_t, double> shares_;  // of degraded links; 0: it has failed
    std::map<std::int64_t, NodePaths> paths_;          // of nodes with failed links
    bool switch_links_fail_ = false;
    FatTree::Rails rails_ = FatTree::Rails::none;
    bool relays_ = false;              // where cards hang on rails: whether devices send for each other
    std::vector<std::int64_t> nodes_;  // of the machine, by the job's; behind these those that it has not; or none
};

}  // namespace rehearse::sim
