// SPDX-License-Identifier: Apache-2.0
// What the steps of a schedule cost on the devices they run on, and how they look on a timeline.
#pragma once

#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/machine.hpp"
#include "core/schedule.hpp"
#include "core/timeline.hpp"
#include "prices/prices.hpp"
#include "sim/host/cores.hpp"
#include "sim/network/wiring.hpp"

namespace rehearse::sim {

/// Which ranks are slower than their prices say, and for what share of them a step waits.
struct Pace {
    std::span<const double> of_rank{};  // empty: none
    double quorum = 1;
    double fastest = 1;  // no rank is faster than its prices say by more than this factor, 1 or less

    /// How much longer what the rank computes takes than its price says.
    double of(RankIndex rank) const { return of_rank.empty() ? 1 : of_rank[static_cast<std::size_t>(rank)]; }
};

class Steps {
public:
    /// Keeps references. Rank r sits on device r. InputError when the machine has too few devices, or a price or a
    /// storage tier is missing.
    Steps(const Schedule& schedule, const Wiring& wiring, ZScore z_score, Pace pace = {});
    /// The same at another pace, of a machine whose messages are priced otherwise.
    Steps(const Steps& priced, const Wiring& wiring, Pace pace);

    const Schedule& schedule() const { return schedule_; }
    std::int64_t ranks() const { return ranks_; }
    /// Lowest rank of a class.
    RankIndex first_rank(int rank_class) const { return ranks_of(rank_class).front(); }
    const std::vector<RankIndex>& ranks_of(int rank_class) const {
        return ranks_of_[static_cast<std::size_t>(rank_class)];
    }
    int class_of(RankIndex rank) const;
    const Cores& cores() const { return cores_; }

    /// On a core of its own (cores()): how long a Compute, Update or Load takes on this rank of the class; a Load at
    /// what its rank gets of the tier while all that read from it do (tier_rates).
    Seconds duration(int rank_class, int step, RankIndex rank) const;
    /// ... on the slowest rank of the class for which it waits.
    Seconds slowest(int rank_class, int step) const;

    /// What each step of each class takes longer than by itself.
    void lengthen(std::vector<std::vector<Seconds>> extra) { extra_ = std::move(extra); }
    /// ... of this one; that of a computation is in its duration. Of a bucket's sum, with what agreeing on it takes.
    Seconds extra(int rank_class, int step) const;
    /// What of that lengthen() gave.
    Seconds lengthened(int rank_class, int step) const;

    const Pace& pace() const { return pace_; }

    /// Everything but rank, iteration, times and what a collective sends.
    Event event(int rank_class, int step) const;

private:
    using OnDevice = std::map<const DeviceClass*, std::vector<Seconds>>;  // by step
    void find_paces();
    void find_alike();
    void price_class(int rank_class, const DeviceClass& device);
    Seconds price_step(const Step& step, const DeviceClass& device) const;
    void find_loading();
    void find_control();
    Seconds load_time(const Load& load, RankIndex rank) const;
    /// Of a micro-batch that one of several learners takes.
    Seconds beside_learners(const Problem& problem, Seconds alone, const DeviceClass& device) const;
    /// What a rank computes beside a collective of its own.
    Seconds beside(const Communicate& communicate, RankIndex rank) const;
    const Step& step_of(int rank_class, int step) const;

    const Schedule& schedule_;
    const Wiring& wiring_;
    ZScore z_score_;
    std::int64_t ranks_;
    Cores cores_;
    std::vector<std::vector<RankIndex>> ranks_of_;  // by class
    struct Figures {
        Bytes moved;
        Flops flops;
    };
    std::vector<std::vector<int>> alike_;                               // by class: first_alike
    std::vector<std::vector<Figures>> figures_;                         // by class and step, of the first alike
    std::vector<OnDevice> durations_;                                   // by class
    std::map<std::string, std::map<std::int64_t, Bandwidth>> loading_;  // what each rank that reads gets: tier, node
    Pace pace_;
    std::vector<std::map<const DeviceClass*, double>> class_pace_;  // of the slowest rank that is waited for
    std::vector<std::vector<Seconds>> extra_;                       // by class and step; or empty
    std::vector<std::vector<Seconds>> control_;                     // the same, of what sums are agreed on
};

}  // namespace rehearse::sim
