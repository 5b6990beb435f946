// SPDX-License-Identifier: Apache-2.0
#include "sim/modes/servers.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "core/error.hpp"
#include "core/index.hpp"
#include "core/looks.hpp"
#include "core/methods/servers.hpp"
#include "sim/check/bounds.hpp"
#include "sim/host/overlap.hpp"

namespace rehearse::sim {

namespace s4u = simgrid::s4u;

Servers::Servers(const Steps& steps, const Wiring& wiring, Simulation& simulation, const CoreWork& cores,
                 std::span<const double> paces, Timeline& timeline, Traffic* traffic)
    : steps_(steps),
      schedule_(steps.schedule()),
      wiring_(wiring),
      simulation_(simulation),
      cores_(cores),
      timeline_(timeline),
      traffic_(traffic),
      as_run_(loses_to_messages(wiring.machine())) {
    const std::int64_t count = schedule_.methods.get<rehearse::Servers>().count;
    require(paces.empty() || std::ssize(paces) == count, "a pace for each server");
    for (std::int64_t s = 0; s < count; ++s) {
        servers_.push_back({.device = device_of_server(schedule_, s), .pace = paces.empty() ? 1 : paces[at(s)]});
    }
}

// One read and one write of each number.
Seconds Servers::copying(std::int64_t elements, std::int64_t device) const {
    if (!as_run_) return {};
    const Problem copy{Activation{Nonlinearity::relu, {elements}}, Pass::forward, 1, DataType::f32};
    return price(copy, wiring_.device_class(device)).time;
}

// Half of the nap, on average.
Seconds Servers::late(Seconds waited) const {
    using Nanoseconds = std::chrono::nanoseconds;
    const auto nap = attentive_nap(Nanoseconds{static_cast<Nanoseconds::rep>(waited.value * 1e9)});
    if (!as_run_ || nap < nap_at_each_look) return {};
    return Seconds{0.5e-9 * static_cast<double>(nap.count())};
}

Seconds Servers::unpacking(const WorkerGroup& group) const {
    Seconds sum;
    for (const Step& step : schedule_.classes[at(group.rank_class)].steps) {
        const auto* push_pull = std::get_if<PushPull>(&step.action);
        if (push_pull != nullptr) sum += copying(push_pull->received, group.ranks.front());
    }
    return sum;
}

bool Servers::trades(RankIndex rank, const PushPull& push_pull) const {
    return push_pull.group < 0 || place_on(schedule_.mesh, push_pull.group, rank) == 0;
}

void Servers::expect(const WorkerGroup& group, const PushPull& push_pull, std::int64_t times) {
    const auto traders = std::ranges::count_if(group.ranks, [&](RankIndex rank) { return trades(rank, push_pull); });
    servers_[at(push_pull.server)].requests += traders * times;
}

void Servers::start() {
    for (std::size_t s = 0; s < servers_.size(); ++s) {
        simulation_.start(servers_[s].device, [this, s] { serve(static_cast<std::int64_t>(s)); });
    }
}

// A flow by itself on its route, and the latency after its last byte. Nothing within a device.
Seconds Servers::latency(std::int64_t from, std::int64_t to, Bytes bytes) const {
    std::vector<Hop> hops;
    const Seconds route = wiring_.route(from, to, hops);
    PerByte slowest;
    for (const Hop& hop : hops) slowest = std::max(slowest, hop.cost);
    return route + wiring_.beyond(wiring_.across(from, to), bytes, slowest);
}
s4u::CommPtr Servers::send(std::int64_t from, std::int64_t to, Bytes bytes) {
    ++flows_;
    // How much is told, not when: of a message that shares its links only its start and its end are known here.
    if (traffic_ != nullptr && from != to) traffic_->add(traffic_->aggregate(Flow{from, to}), bytes, {}, {});
    return s4u::Comm::sendto_async(simulation_.host(from), simulation_.host(to),
                                   static_cast<std::uint64_t>(bytes.value));
}

Seconds Servers::move(const std::vector<std::pair<std::int64_t, std::int64_t>>& ways, Bytes bytes) {
    std::vector<s4u::CommPtr> comms;
    for (const auto& [from, to] : ways) comms.push_back(send(from, to, bytes));
    for (const s4u::CommPtr& comm : comms) comm->wait();
    Seconds last = simulation_.now();
    for (const auto& [from, to] : ways) {
        const Seconds after = latency(from, to, bytes);
        simulation_.land(from, to);
        last = std::max(last, simulation_.now() + after);
    }
    simulation_.sleep_until(last);
    return simulation_.now();
}

Seconds Servers::exchange(WorkerGroup& group, const PushPull& push_pull, int iteration, Seconds when) {
    Server& server = servers_[at(push_pull.server)];
    const Bytes each = size_of(push_pull.type);
    std::vector<std::pair<std::int64_t, std::int64_t>> there, back;
    std::vector<CoreWork::Work> packing;
    std::size_t traders = 0;
    for (const RankIndex rank : group.ranks) {
        if (!trades(rank, push_pull)) continue;
        ++traders;
        packing.push_back({rank, copying(push_pull.sent, rank)});
        if (rank == server.device) continue;
        there.emplace_back(rank, server.device);
        back.emplace_back(server.device, rank);
    }
    simulation_.sleep_until(cores_.run(packing, when));
    const Seconds pushed = move(there, each * static_cast<double>(push_pull.sent));
    const s4u::SemaphorePtr done = s4u::Semaphore::create(0);
    for (std::size_t i = 0; i < traders; ++i) {
        server.queue.push_back({&push_pull, &group, iteration, i == 0, done});
        server.waiting->release();
    }
    for (std::size_t i = 0; i < traders; ++i) done->acquire();
    const Seconds back_at = move(back, each * static_cast<double>(push_pull.received));
    simulation_.sleep_until(back_at + late(back_at - pushed));
    return simulation_.now();
}

void Servers::serve(std::int64_t index) {
    Server& server = servers_[at(index)];
    const DeviceClass& device = wiring_.device_class(server.device);
    for (std::int64_t taken = 0; taken < server.requests; ++taken) {
        const Seconds idle = simulation_.now();
        server.waiting->acquire();
        simulation_.sleep_until(simulation_.now() + late(simulation_.now() - idle));
        const Request request = server.queue.front();
        server.queue.pop_front();
        Event event;
        event.rank = RankIndex{steps_.ranks() + index};
        event.bucket = request.push_pull->bucket;
        event.step = fmt::format("bucket{}:serve", request.push_pull->bucket);
        event.layer = fmt::format("bucket{}", request.push_pull->bucket);
        event.pass = "update";
        event.iteration = request.iteration;
        event.start = simulation_.now();
        Seconds work =
            copying(request.push_pull->sent, server.device) + copying(request.push_pull->received, server.device);
        for (const Problem& problem : request.push_pull->work) {
            work += std::max(price(problem, device).time * server.pace, least_time(problem, device));
            event.flops += flops(problem.op, problem.pass, problem.batch);
            event.bytes += bytes_moved(problem.op, problem.pass, problem.type, problem.batch);
        }
        const CoreWork::Work own{server.device, work};
        event.end = cores_.run({&own, 1}, event.start);
        simulation_.sleep_until(event.end);
        timeline_.events.push_back(std::move(event));
        count(request);
        replicate(index, *request.push_pull);
        request.done->release();
    }
    for (const s4u::CommPtr& copy : server.copying) copy->wait();
}

void Servers::count(const Request& request) {
    if (!request.counts) return;
    std::int64_t& updates = updates_[{request.group->stage, request.push_pull->bucket}];
    std::int64_t& has = request.group->version[request.push_pull->bucket];
    const auto stale = at(std::max<std::int64_t>(0, updates - has));
    if (stale_.size() <= stale) stale_.resize(stale + 1);
    ++stale_[stale];
    has = ++updates;
}

// The other servers that keep the bucket get its weights in the background.
void Servers::replicate(std::int64_t index, const PushPull& push_pull) {
    const std::int64_t count = schedule_.methods.get<rehearse::Servers>().count;
    for (int copy = 1; copy < schedule_.methods.get<rehearse::Servers>().copies; ++copy) {
        const std::int64_t other = servers_[at((index + copy) % count)].device;
        if (other == servers_[at(index)].device) continue;
        const Bytes bytes = size_of(push_pull.type) * static_cast<double>(push_pull.received);
        servers_[at(index)].copying.push_back(send(servers_[at(index)].device, other, bytes));
    }
}

}  // namespace rehearse::sim
