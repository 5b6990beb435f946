// SPDX-License-Identifier: Apache-2.0
// Parameter servers: what pushing gradients to them and pulling weights from them takes. Included by this folder's
// sources only.
#pragma once

#include <deque>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "core/timeline.hpp"
#include "sim/modes/core_work.hpp"
#include "sim/network/traffic.hpp"
#include "sim/network/zone.hpp"
#include "sim/steps.hpp"

namespace rehearse::sim {

/// Ranks that are in step, and how far each stream's steps are; of a pipeline those of one stage.
struct WorkerGroup {
    std::vector<RankIndex> ranks;
    int rank_class = 0;
    std::int64_t stage = 0;
    std::vector<double> pace;                       // by iteration
    std::vector<simgrid::s4u::SemaphorePtr> ended;  // by step; only where another stream waits
    simgrid::s4u::BarrierPtr iteration;
    std::map<int, std::int64_t> version;  // by bucket: of the weights that it has
};

/// One actor a server: it takes one request after the other, in the order in which they have come, for as long as its
/// work is priced on its device, and does nothing else.
///
/// On hosts whose messages were measured beside computation (Overlap of core/machine.hpp), a trade is what `run` does
/// of it: gradients are packed, unpacked by the server, weights are packed there and unpacked at the end of the step,
/// each a copy by the core; and who has waited for a message for long sees it late, as he naps between looks.
class Servers {
public:
    /// Keeps references. `paces`: by server, how many times as long as priced it computes; empty: all as priced. What
    /// servers do is added to the timeline, and what they and the ranks send to each other to the traffic, unless null.
    Servers(const Steps& steps, const Wiring& wiring, Simulation& simulation, const CoreWork& cores,
            std::span<const double> paces, Timeline& timeline, Traffic* traffic);

    /// A group will come with this trade so many times.
    void expect(const WorkerGroup& group, const PushPull& push_pull, std::int64_t times);
    void start();
    /// Called by an actor of the group: all its ranks that trade push and pull, until the last of them has its weights.
    Seconds exchange(WorkerGroup& group, const PushPull& push_pull, int iteration, Seconds when);

    /// What the weights that have come take to be unpacked, at the end of a group's step.
    Seconds unpacking(const WorkerGroup& group) const;

    /// Called by an actor: `bytes` from each first to each second device, until the last of them is there.
    Seconds move(const std::vector<std::pair<std::int64_t, std::int64_t>>& ways, Bytes bytes);

    std::int64_t flows() const { return flows_; }
    /// How many updates were by gradients at weights that 0, 1, 2, ... other updates had come after.
    const std::vector<std::int64_t>& staleness() const { return stale_; }

private:
    struct Request {
        const PushPull* push_pull = nullptr;
        WorkerGroup* group = nullptr;
        int iteration = 0;
        bool counts = true;  // of several pieces of one bucket the first
        simgrid::s4u::SemaphorePtr done;
    };
    struct Server {
        std::int64_t device = 0;
        double pace = 1;
        std::deque<Request> queue{};
        simgrid::s4u::SemaphorePtr waiting = simgrid::s4u::Semaphore::create(0);
        std::int64_t requests = 0;  // that will come in all
        std::vector<simgrid::s4u::CommPtr> copying{};
    };
    Seconds copying(std::int64_t elements, std::int64_t device) const;
    Seconds late(Seconds waited) const;
    bool trades(RankIndex rank, const PushPull& push_pull) const;
    Seconds latency(std::int64_t from, std::int64_t to, Bytes bytes) const;
    simgrid::s4u::CommPtr send(std::int64_t from, std::int64_t to, Bytes bytes);
    void serve(std::int64_t index);
    void count(const Request& request);
    void replicate(std::int64_t index, const PushPull& push_pull);

    const Steps& steps_;
    const Schedule& schedule_;
    const Wiring& wiring_;
    Simulation& simulation_;
    const CoreWork& cores_;
    Timeline& timeline_;
    Traffic* traffic_;
    bool as_run_;  // what `run` does of a trade is priced, too
    std::vector<Server> servers_;
    std::map<std::pair<std::int64_t, int>, std::int64_t> updates_;  // by stage and bucket
    std::vector<std::int64_t> stale_;
    std::int64_t flows_ = 0;
};

}  // namespace rehearse::sim
