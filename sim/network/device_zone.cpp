// SPDX-License-Identifier: Apache-2.0
#include "sim/network/device_zone.hpp"

#include <fmt/format.h>
#include <simgrid/version.h>
#include <simgrid/kernel/routing/NetPoint.hpp>

#include <algorithm>
#include <array>
#include <csignal>
#include <limits>
#include <optional>
#include <string_view>

#include "sim/network/simgrid_names.hpp"

// As SimGrid 3.32 to 4 declare it in a header that is not installed.
namespace simgrid::kernel::context {
class Context {
public:
    static Context* self();
    static void set_current(Context* self);
};
}  // namespace simgrid::kernel::context

namespace rehearse::sim {

namespace s4u = simgrid::s4u;
namespace routing = simgrid::kernel::routing;

namespace {

/// SimGrid takes Ctrl-C and segmentation faults for itself; they are the program's that we are part of.
class KeptSignals {
public:
    KeptSignals() {
        for (std::size_t i = 0; i < kept.size(); ++i) sigaction(kept[i], nullptr, &before_[i]);
    }
    ~KeptSignals() {
        for (std::size_t i = 0; i < kept.size(); ++i) sigaction(kept[i], &before_[i], nullptr);
    }
    KeptSignals(const KeptSignals&) = delete;
    KeptSignals& operator=(const KeptSignals&) = delete;

private:
    static constexpr std::array kept{SIGINT, SIGSEGV};
    std::array<struct sigaction, kept.size()> before_{};
};

// CM02 shares bandwidth max-min and multiplies nothing; its TCP window and cross traffic are switched off. SimGrid's
// own messages go nowhere. 64 KiB of stack an actor are plenty for ours. Times nearer than the precision (s) count as
// equal.
std::unique_ptr<s4u::Engine> new_engine() {
    std::array<std::string, 11> words{"rehearse",
                                      "--log=root.thres:critical",
                                      "--cfg=network/model:CM02",
                                      "--cfg=network/latency-factor:1",
                                      "--cfg=network/bandwidth-factor:1",
                                      "--cfg=network/weight-S:0",
                                      "--cfg=network/TCP-gamma:0",
                                      "--cfg=network/crosstraffic:0",
                                      "--cfg=surf/precision:1e-12",
                                      "--cfg=maxmin/precision:1e-12",
                                      "--cfg=contexts/stack-size:64"};
    std::array<char*, words.size() + 1> argv{};
    for (std::size_t i = 0; i < words.size(); ++i) argv[i] = words[i].data();
    int argc = static_cast<int>(words.size());
    const KeptSignals kept;
    auto made = std::make_unique<s4u::Engine>(&argc, argv.data());
#if SIMGRID_VERSION < 40000  // since then an engine has a root zone from the beginning
    s4u::create_empty_zone("rehearse");
#endif
    s4u::Engine::on_time_advance_cb([](double /*delta*/) {
        if (watcher()) watcher()();
    });
    return made;
}

// Names are unique in the engine for ever.
std::string unique(std::string_view what) {
    static std::int64_t count = 0;
    return fmt::format("{}#{}", what, count++);
}

// Simulations inside each other take a zone each. They go before the engine, which is made first.
std::vector<std::unique_ptr<DeviceZone>>& spare_zones() {
    engine();
    static std::vector<std::unique_ptr<DeviceZone>> the_zones;
    return the_zones;
}

}  // namespace

// SimGrid remembers by thread who runs its main loop: the thread that made the engine. Another one that simulates, when
// no other does, takes that over; without it the first actor that it makes is a crash.
s4u::Engine& engine() {
    using simgrid::kernel::context::Context;
    static const auto the_engine = new_engine();
    static Context* const main_loop = Context::self();
    if (Context::self() == nullptr) Context::set_current(main_loop);
    return *the_engine;
}

// SimGrid's signals keep their listeners for ever: one listens for all simulations.
std::function<void()>& watcher() {
    static std::function<void()> the_watcher;
    return the_watcher;
}

std::unique_ptr<DeviceZone> take_zone(const Wiring& wiring, std::int64_t devices, std::span<const std::int64_t> cores) {
    auto& spare = spare_zones();
    std::unique_ptr<DeviceZone> zone;
    if (spare.empty()) {
        zone = std::make_unique<DeviceZone>(*engine().get_netzone_root()->get_impl());
    } else {
        zone = std::move(spare.back());
        spare.pop_back();
    }
    zone->take(wiring, devices, cores);
    return zone;
}

void leave_zone(std::unique_ptr<DeviceZone> zone) {
    zone->leave();
    spare_zones().push_back(std::move(zone));
}

DeviceZone::DeviceZone(const NetZoneImpl& root) : NetZoneImpl(unique("machine")) {
    set_network_model(root.get_network_model());
    set_cpu_pm_model(root.get_cpu_pm_model());
    set_cpu_vm_model(root.get_cpu_vm_model());
    set_disk_model(root.get_disk_model());
    set_host_model(root.get_host_model());
}

void DeviceZone::take(const Wiring& wiring, std::int64_t devices, std::span<const std::int64_t> cores) {
    wiring_ = &wiring;
    while (std::ssize(devices_) < devices) devices_.push_back(new_host("device", std::ssize(devices_), 1));
    for (const std::int64_t count : cores) {
        auto spare = spare_cores_.extract(count);
        cores_.push_back(spare ? spare.mapped() : new_host("cores", -1, count));
    }
}

void DeviceZone::leave() {
    for (s4u::Host* host : cores_) spare_cores_.emplace(host->get_core_count(), host);
    for (const auto& [id, link] : links_) spare_links_.emplace(link->get_bandwidth(), link);
    cores_.clear();
    links_.clear();
    busy_.clear();
    under_way_.clear();
    turns_ = 0;
    wiring_ = nullptr;
}

// A core does a second of work in a second.
s4u::Host* DeviceZone::new_host(std::string_view what, std::int64_t device, std::int64_t cores) {
    device_of_.push_back(device);
    return host_in<NetZoneImpl>(*this, unique(what), 1)->set_core_count(static_cast<int>(cores))->seal();
}

void DeviceZone::get_local_route(const routing::NetPoint* from, const routing::NetPoint* to, routing::Route* into,
                                 double* latency) {
    *latency = 0;
    const Pair pair{device_of_.at(from->id()), device_of_.at(to->id())};
    std::vector<Hop> hops;
    wiring_->route(pair.first, pair.second, hops);
    const std::optional<AdaptiveSwitches::Ways> ways = wiring_->ways(pair.first, pair.second);
    if (ways) std::erase_if(hops, [&](const Hop& hop) { return wiring_->between_switches(hop.link); });
    for (const Hop& hop : hops) into->link_list_.push_back(link(hop.link));
    if (!ways) return;
    for (const Hop& hop : ways->hops) into->link_list_.push_back(link(hop.link));
    std::vector<std::int64_t>& taken = under_way_[pair].emplace_back();
    for (const AdaptiveSwitches::Choice& choice : ways->choices) choose(choice, taken);
    for (const std::int64_t id : taken) {
        if (id >= 0) into->link_list_.push_back(link(id));
    }
}

void DeviceZone::land(std::int64_t from, std::int64_t to) {
    const auto found = under_way_.find({from, to});
    if (found == under_way_.end()) return;
    for (const std::int64_t id : found->second.front()) --busy_[id];
    found->second.pop_front();
    if (found->second.empty()) under_way_.erase(found);
}

// One of the same bandwidth, or, so that machines which differ leave no more than one of them does, of another, or a
// new one.
simgrid::kernel::resource::StandardLinkImpl* DeviceZone::link(std::int64_t id) {
    s4u::Link*& made = links_[id];
    if (made != nullptr) return made->get_impl();
    const double bandwidth = wiring_->link(id).bandwidth.value;
    if (auto spare = spare_links_.extract(bandwidth)) {
        made = spare.mapped();
    } else if (!spare_links_.empty()) {
        made = spare_links_.extract(spare_links_.begin()).mapped()->set_bandwidth(bandwidth);
    } else {
        made = link_in<NetZoneImpl>(*this, unique("link"), bandwidth)->seal();
    }
    return made->get_impl();
}

// The least busy way, by pieces that are under way on its busiest link; a detour must be less busy by a tenth, so
// that it stays away while all links are alike (UGAL's threshold). A router's own
// cables, which any router of its group may have, are a link that carries anything, with a number of its own.
void DeviceZone::choose(const AdaptiveSwitches::Choice& choice, std::vector<std::int64_t>& taken) {
    constexpr std::int64_t straight = 10, detour = 11;
    const auto number = [&](std::int64_t a, std::int64_t b) { return choice.first + a * choice.size + b; };
    const auto own = [&](std::int64_t a) { return -1 - number(a, a); };
    std::vector<std::int64_t> best;
    std::int64_t least = std::numeric_limits<std::int64_t>::max();
    const auto offer = [&](std::vector<std::int64_t> way) {
        std::int64_t busiest = 0;
        for (const std::int64_t id : way) busiest = std::max(busiest, busy_[id] + 1);
        busiest *= std::ssize(way) > 1 ? detour : straight;
        if (busiest >= least) return;
        least = busiest;
        best = std::move(way);
    };
    const std::int64_t end = choice.to < 0 ? choice.from : choice.to;
    if (choice.from >= 0 && choice.to >= 0) offer({number(choice.from, choice.to)});
    // Ties go to places in turn, so that none is always the first.
    for (std::int64_t turn = 0; turn < choice.size; ++turn) {
        const std::int64_t by = (turn + turns_) % choice.size;
        if (choice.to < 0) {
            offer({by == end ? own(by) : number(choice.from, by)});
        } else if (choice.from < 0) {
            offer({by == end ? own(by) : number(by, choice.to)});
        } else if (by != choice.from && by != choice.to) {
            offer({number(choice.from, by), number(by, choice.to)});
        }
    }
    ++turns_;
    for (const std::int64_t id : best) ++busy_[id];
    taken.insert(taken.end(), best.begin(), best.end());
}

}  // namespace rehearse::sim
