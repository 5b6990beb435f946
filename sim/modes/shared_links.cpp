// SPDX-License-Identifier: Apache-2.0
#include "sim/modes/shared_links.hpp"

#include <algorithm>
#include <set>
#include <variant>

#include "core/collectives/library.hpp"

namespace rehearse::sim {

namespace {

// Messages of other streams.
bool sends_beside_library(const RankClass& rank_class) {
    std::set<Stream> library, others;
    for (const Step& step : rank_class.steps) {
        const auto* communicate = std::get_if<Communicate>(&step.action);
        const bool moves = communicate != nullptr || std::holds_alternative<Send>(step.action);
        if (!moves) continue;
        (communicate != nullptr && of_library(communicate->algorithm) ? library : others).insert(step.stream);
    }
    return std::ranges::any_of(library, [&](Stream stream) { return others.size() > others.count(stream); });
}

}  // namespace

SharedLinks::SharedLinks(const Schedule& schedule, const Wiring& wiring, Simulation& simulation)
    : wiring_(wiring), simulation_(simulation) {
    for (const RankClass& each : schedule.classes) matter_.push_back(sends_beside_library(each));
}

SharedLinks::Takes SharedLinks::begin(RankIndex rank, std::span<const Exchange> messages) {
    Takes takes;
    for (const Exchange& message : messages) {
        if (!message.sends || message.peer == rank) continue;
        const bool across = wiring_.across(rank, message.peer);
        takes[across ? 1 : 0] += on_links(rank, message, across);
    }
    for (const std::size_t kind : {0, 1}) {
        Taken& of = taken_[{rank, kind == 1}];
        of.begun += takes[kind];
        of.open += takes[kind];
    }
    return takes;
}

void SharedLinks::end(RankIndex rank, const Takes& takes) {
    for (const std::size_t kind : {0, 1}) taken_[{rank, kind == 1}].open -= takes[kind];
}

// Inside a node a message takes its share of what all links of the device carry together, as the library's kernel has
// them all; between nodes it takes the slowest link on its way.
Seconds SharedLinks::on_links(RankIndex rank, const Exchange& message, bool across) {
    if (!across) return message.bytes / wiring_.egress(rank);
    hops_.clear();
    PerByte slowest;
    wiring_.route(rank, message.peer, hops_);
    for (const Hop& hop : hops_) slowest = std::max(slowest, hop.cost);
    return slowest * message.bytes;
}

Seconds SharedLinks::end_of_library(RankIndex rank, Seconds alone, bool across) {
    simgrid::s4u::MutexPtr& kernel = kernels_[rank];
    if (kernel == nullptr) kernel = simgrid::s4u::Mutex::create();
    kernel->lock();
    const Taken& others = taken_[{rank, across}];
    const Seconds before = others.begun - others.open, start = simulation_.now();
    Seconds end = start, until = start + alone;
    while (end < until) {
        simulation_.sleep_until(end = until);
        until = start + alone + (others.begun - before);
    }
    kernel->unlock();
    return end;
}

}  // namespace rehearse::sim
