// SPDX-License-Identifier: Apache-2.0
#include "sim/network/zone.hpp"

#include <fmt/format.h>

#include "core/error.hpp"
#include "sim/network/device_zone.hpp"
#include "sim/network/simgrid_names.hpp"

namespace rehearse::sim {

namespace s4u = simgrid::s4u;

Simulation::Simulation(const Wiring& wiring, std::int64_t devices, std::span<const std::int64_t> cores)
    : zone_(take_zone(wiring, devices, cores)), origin_(s4u::Engine::get_clock()) {}

Simulation::~Simulation() {
    if (watched_) watcher() = nullptr;
    if (at_work_ == 0) leave_zone(std::move(zone_));  // else actors are left on its hosts, and they go with it
}

void Simulation::watch(std::function<void()> to_call) {
    watcher() = std::move(to_call);
    watched_ = true;
}

bool Simulation::has_choice(std::int64_t from, std::int64_t to) const { return zone_->has_choice(from, to); }

void Simulation::land(std::int64_t from, std::int64_t to) const { zone_->land(from, to); }

s4u::Host* Simulation::host(std::int64_t device) const { return zone_->device(device); }

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
        under_way.push_back(s4u::this_actor::exec_init(work.value)->set_host(zone_->cores(cores)));
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
