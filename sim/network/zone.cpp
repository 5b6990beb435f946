// SPDX-License-Identifier: Apache-2.0
#include "sim/network/zone.hpp"

#include <fmt/format.h>
#include <simgrid/version.h>
#include <simgrid/kernel/routing/NetPoint.hpp>
#include <simgrid/kernel/routing/NetZoneImpl.hpp>

#include <array>
#include <csignal>
#include <deque>
#include <limits>
#include <map>
#include <string>
#include <unordered_map>

#include "core/error.hpp"
#include "sim/network/simgrid_names.hpp"

namespace rehearse::sim {

namespace s4u = simgrid::s4u;
namespace routing = simgrid::kernel::routing;

namespace {

// SimGrid's signals keep their listeners for ever: one listens for all simulations.
std::function<void()>& watcher() {
    static std::function<void()> the_watcher;
    return the_watcher;
}

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
s4u::Engine& engine() {
    static const auto the_engine = [] {
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
    }();
    return *the_engine;
}

// Names are unique in the engine for ever.
std::string unique(std::string_view what) {
    static std::int64_t count = 0;
    return fmt::format("{}#{}", what, count++);
}

}  // namespace

class DeviceZone : public routing::NetZoneImpl {
public:
    DeviceZone(const Wiring& wiring, const routing::NetZoneImpl& root)
        : NetZoneImpl(unique("machine")), wiring_(wiring) {
        set_network_model(root.get_network_model());
        set_cpu_pm_model(root.get_cpu_pm_model());
        set_cpu_vm_model(root.get_cpu_vm_model());
        set_disk_model(root.get_disk_model());
        set_host_model(root.get_host_model());
    }
    ~DeviceZone() override = default;
    DeviceZone(const DeviceZone&) = delete;
    DeviceZone& operator=(const DeviceZone&) = delete;

    // A core does a second of work in a second.
    void add_device() { hosts_.push_back(host_in<NetZoneImpl>(*this, unique("device"), 1)->seal()); }
    void add_cores(std::int64_t count) {
        hosts_.push_back(
            host_in<NetZoneImpl>(*this, unique("cores"), 1)->set_core_count(static_cast<int>(count))->seal());
    }
    s4u::Host* host(std::int64_t device) const { return hosts_.at(static_cast<std::size_t>(device)); }

    // A host's id in its zone is the number of its device.
    void get_local_route(const routing::NetPoint* from, const routing::NetPoint* to, routing::Route* into,
                         double* latency) override {
        *latency = 0;
        const Pair pair{static_cast<std::int64_t>(from->id()), static_cast<std::int64_t>(to->id())};
        std::vector<Hop> hops;
        wiring_.route(pair.first, pair.second, hops);
        const std::optional<AdaptiveSwitches::Ways> ways = wiring_.ways(pair.first, pair.second);
        if (ways) std::erase_if(hops, [&](const Hop& hop) { return wiring_.between_switches(hop.link); });
        for (const Hop& hop : hops) into->link_list_.push_back(link(hop.link));
        if (!ways) return;
        for (const Hop& hop : ways->hops) into->link_list_.push_back(link(hop.link));
        std::vector<std::int64_t>& taken = under_way_[pair].emplace_back();
        for (const AdaptiveSwitches::Choice& choice : ways->choices) take(choice, taken);
        for (const std::int64_t id : taken) {
            if (id >= 0) into->link_list_.push_back(link(id));
        }
    }
    bool has_choice(std::int64_t from, std::int64_t to) const { return wiring_.ways(from, to).has_value(); }
    // The oldest piece from one to the other has landed.
    void land(std::int64_t from, std::int64_t to) {
        const auto found = under_way_.find({from, to});
        if (found == under_way_.end()) return;
        for (const std::int64_t id : found->second.front()) --busy_[id];
        found->second.pop_front();
        if (found->second.empty()) under_way_.erase(found);
    }
    void get_graph(const s_xbt_graph_t*, std::map<std::string, xbt_node_t, std::less<>>*,
                   std::map<std::string, xbt_edge_t, std::less<>>*) override {}

private:
    simgrid::kernel::resource::StandardLinkImpl* link(std::int64_t id) {
        s4u::Link*& made = links_[id];
        if (made == nullptr) {
            const Link link = wiring_.link(id);
            made = link_in<NetZoneImpl>(*this, unique(link.name), link.bandwidth.value)->seal();
        }
        return made->get_impl();
    }

    using Pair = std::pair<std::int64_t, std::int64_t>;

    // The least busy way, by pieces that are under way on its busiest link; a detour must be less busy by a tenth, so
    // that it stays away while all links are alike (UGAL's threshold). A router's own
    // cables, which any router of its group may have, are a link that carries anything, with a number of its own.
    static constexpr std::int64_t straight = 10, detour = 11;
    void take(const AdaptiveSwitches::Choice& choice, std::vector<std::int64_t>& taken) {
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

    const Wiring& wiring_;
    std::vector<s4u::Host*> hosts_;
    std::unordered_map<std::int64_t, std::int64_t> busy_;  // by link: pieces under way, where routing is adaptive
    std::map<Pair, std::deque<std::vector<std::int64_t>>> under_way_;  // by devices: what each piece takes
    std::int64_t turns_ = 0;
    std::unordered_map<std::int64_t, s4u::Link*> links_;  // those that some route has used
};

Simulation::Simulation(const Wiring& wiring, std::int64_t devices, std::span<const std::int64_t> cores)
    : zone_(std::make_unique<DeviceZone>(wiring, *engine().get_netzone_root()->get_impl())),
      origin_(s4u::Engine::get_clock()),
      first_cores_(devices) {
    for (std::int64_t device = 0; device < devices; ++device) zone_->add_device();
    for (const std::int64_t count : cores) zone_->add_cores(count);  // behind the devices, whose numbers are places
}

Simulation::~Simulation() {
    if (watched_) watcher() = nullptr;
}

void Simulation::watch(std::function<void()> to_call) {
    watcher() = std::move(to_call);
    watched_ = true;
}

bool Simulation::has_choice(std::int64_t from, std::int64_t to) const { return zone_->has_choice(from, to); }

void Simulation::land(std::int64_t from, std::int64_t to) const { zone_->land(from, to); }

s4u::Host* Simulation::host(std::int64_t device) const { return zone_->host(device); }

void Simulation::start(std::int64_t device, const std::function<void()>& work) {
    ++at_work_;
    start_on<s4u::Engine, s4u::Actor>(host(device), "rank", std::function<void()>([this, work] {
                                          work();
                                          --at_work_;
                                      }));
}

Seconds Simulation::now() const { return Seconds{s4u::Engine::get_clock()} - origin_; }

void Simulation::sleep_until(Seconds when) const {
    if (when > now()) s4u::this_actor::sleep_until((when + origin_).value);
}

void Simulation::compute(int cores, Seconds work) const {
    const std::pair one{cores, work};
    compute({&one, 1});
}
void Simulation::compute(std::span<const std::pair<int, Seconds>> works) const {
    std::vector<s4u::ExecPtr> under_way;
    for (const auto& [cores, work] : works) {
        if (!(work > Seconds{0})) continue;
        under_way.push_back(s4u::this_actor::exec_init(work.value)->set_host(zone_->host(first_cores_ + cores)));
        under_way.back()->start();
    }
    for (const s4u::ExecPtr& each : under_way) each->wait();
}

void Simulation::run() const {
    try {
        engine().run();
    } catch (const simgrid::Exception& error) {
        throw BackendError(fmt::format("SimGrid: {}", error.what()));
    }
    require(at_work_ == 0, "no rank waits for a message or a step that never comes");
}

}  // namespace rehearse::sim
