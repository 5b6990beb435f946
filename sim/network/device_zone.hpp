// SPDX-License-Identifier: Apache-2.0
// Hosts and links of SimGrid's, made once and used again. Included by this folder's sources only.
//
// SimGrid 3.32 gives the memory of a constraint, one a host and one a link, back when its engine ends, however soon the
// host or the link has gone. So a zone outlives the simulation that it was made for, and the next one takes it over
// with all that is in it: a process holds as many as the largest simulation took, not as many as all of them.
#pragma once

#include <simgrid/kernel/routing/NetZoneImpl.hpp>
#include <simgrid/s4u.hpp>

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "sim/network/wiring.hpp"

namespace rehearse::sim {

/// The only one of this process; made when it is first asked for.
simgrid::s4u::Engine& engine();
/// Called each time that its clock has gone on.
std::function<void()>& watcher();

/// The devices of one simulation after the other, the cores that they share, and what joins them. It has no parent, so
/// it is never sealed: hosts and links may be added to an engine that has run before.
class DeviceZone : public simgrid::kernel::routing::NetZoneImpl {
public:
    explicit DeviceZone(const NetZoneImpl& root);
    ~DeviceZone() override = default;
    DeviceZone(const DeviceZone&) = delete;
    DeviceZone& operator=(const DeviceZone&) = delete;

    /// From here on the zone of one simulation, as if it were new.
    void take(const Wiring& wiring, std::int64_t devices, std::span<const std::int64_t> cores);
    /// No actor is on its hosts and no message under way any more.
    void leave();

    simgrid::s4u::Host* device(std::int64_t number) const { return devices_.at(static_cast<std::size_t>(number)); }
    simgrid::s4u::Host* cores(int pool) const { return cores_.at(static_cast<std::size_t>(pool)); }
    bool has_choice(std::int64_t from, std::int64_t to) const { return wiring_->ways(from, to).has_value(); }
    /// The oldest piece from one to the other has landed.
    void land(std::int64_t from, std::int64_t to);

    void get_local_route(const simgrid::kernel::routing::NetPoint* from, const simgrid::kernel::routing::NetPoint* to,
                         simgrid::kernel::routing::Route* into, double* latency) override;
    void get_graph(const s_xbt_graph_t*, std::map<std::string, xbt_node_t, std::less<>>*,
                   std::map<std::string, xbt_edge_t, std::less<>>*) override {}

private:
    using Pair = std::pair<std::int64_t, std::int64_t>;

    simgrid::kernel::resource::StandardLinkImpl* link(std::int64_t id);
    simgrid::s4u::Host* new_host(std::string_view what, std::int64_t device, std::int64_t cores);
    void choose(const AdaptiveSwitches::Choice& choice, std::vector<std::int64_t>& taken);

    // Of SimGrid, for as long as the zone lives.
    std::vector<simgrid::s4u::Host*> devices_;
    std::vector<std::int64_t> device_of_;                           // by a host's id in its zone
    std::multimap<std::int64_t, simgrid::s4u::Host*> spare_cores_;  // by how many
    std::multimap<double, simgrid::s4u::Link*> spare_links_;        // by bandwidth

    // Of one simulation.
    const Wiring* wiring_ = nullptr;
    std::vector<simgrid::s4u::Host*> cores_;                       // by pool
    std::unordered_map<std::int64_t, simgrid::s4u::Link*> links_;  // those that some route has used
    std::unordered_map<std::int64_t, std::int64_t> busy_;  // by link: pieces under way, where routing is adaptive
    std::map<Pair, std::deque<std::vector<std::int64_t>>> under_way_;  // by devices: what each piece takes
    std::int64_t turns_ = 0;
};

/// A zone that no simulation has, for one of them; and back from it.
std::unique_ptr<DeviceZone> take_zone(const Wiring& wiring, std::int64_t devices, std::span<const std::int64_t> cores);
void leave_zone(std::unique_ptr<DeviceZone> zone);

}  // namespace rehearse::sim
