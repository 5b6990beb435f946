// SPDX-License-Identifier: Apache-2.0
// SimGrid as a solver of max-min sharing over our own links and routes. Included by this folder's sources and tests
// only.
//
// SimGrid's engine is one a process and lives as long as it; it starts when the first Simulation does. Each Simulation
// has a zone of its own, which the next one takes over. The engine's clock goes on; times are differences.
#pragma once

#include <simgrid/s4u.hpp>

#include <functional>
#include <memory>
#include <span>
#include <utility>

#include "core/units.hpp"
#include "sim/network/wiring.hpp"

namespace rehearse::sim {

class DeviceZone;

/// Hosts for some devices of a machine, joined by links that carry no latency (SimGrid would share a link by its flows'
/// latencies): whoever waits for a message adds its route's latency after the last byte.
class Simulation {
public:
    /// `cores`: how many there are in each pool that ranks share.
    Simulation(const Wiring& wiring, std::int64_t devices, std::span<const std::int64_t> cores = {});
    Simulation(const Simulation&) = delete;
    Simulation& operator=(const Simulation&) = delete;
    ~Simulation();

    simgrid::s4u::Host* host(std::int64_t device) const;
    /// Whether messages between two devices have several ways, and each of their pieces takes the least busy one when
    /// it starts; and that such a piece, the oldest under way between them, has landed.
    bool has_choice(std::int64_t from, std::int64_t to) const;
    void land(std::int64_t from, std::int64_t to) const;
    /// An actor on a device.
    void start(std::int64_t device, const std::function<void()>& work);
    /// Called by an actor: so many seconds of work for one core, on these cores, which share them evenly when more work
    /// than they are. `cores` is an index into the pools that it was made with.
    void compute(int cores, Seconds work) const;
    /// ... several of that at the same time, each by its pool, until the last has ended.
    void compute(std::span<const std::pair<int, Seconds>> works) const;
    /// On SimGrid's clock, when this simulation was made.
    Seconds origin() const { return origin_; }
    /// Since then.
    Seconds now() const;
    /// Called by an actor.
    void sleep_until(Seconds when) const;
    /// Called each time that the clock has gone on, until this simulation goes away: no rate changes in between.
    void watch(std::function<void()> watcher);
    /// Until every actor has ended. BackendError when SimGrid refuses; a bug of ours when some wait for each other.
    void run() const;

private:
    std::unique_ptr<DeviceZone> zone_;
    Seconds origin_;
    std::int64_t at_work_ = 0;  // actors
    bool watched_ = false;
};

}  // namespace rehearse::sim
