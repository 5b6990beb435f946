// SPDX-License-Identifier: Apache-2.0
// What the steps of a schedule send, in the compact form in which folded mode needs it: alike steps share it. What is
// called a class here is a kind of ranks (kinds.hpp).
#pragma once

#include <map>
#include <optional>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "sim/collective/collectives.hpp"
#include "sim/modes/active.hpp"
#include "sim/modes/aggregates.hpp"
#include "sim/modes/kinds.hpp"
#include "sim/network/traffic.hpp"

namespace rehearse::sim {

/// Large: one list a question that the simulation's inner loop asks by class and step.
class Calls {
public:
    /// Keeps references.
    Calls(const KindSteps& steps, const Wiring& wiring, Collectives& collectives, Traffic* traffic);

    /// A Send, by all ranks of its class.
    struct Message {
        int to_class = 0;
        FlowPhase phase;
    };
    const Message& message(int rank_class, int step) const {
        return *messages_[static_cast<std::size_t>(rank_class)][static_cast<std::size_t>(step)];
    }

    struct OfClass {
        bool known = false;
        std::vector<FlowPhase> phases;  // where there are several classes: of this class's groups alone
        std::vector<int> with;          // the classes whose ranks these groups have, in order; one: this class alone
        std::int64_t messages = 0;
        std::optional<Bytes> sent;  // by the class's first rank, once it was asked for
    };
    struct OneCall {
        Call call;
        std::vector<OfClass> of_class;
        std::optional<double> lasting;  // how long, where all ranks begin and end together
        std::optional<std::vector<std::pair<Collectives::Span, int>>> spans;  // with their aggregates in the traffic
    };
    OneCall& call(int rank_class, int step) {
        return calls_[static_cast<std::size_t>(
            call_of_[static_cast<std::size_t>(rank_class)][static_cast<std::size_t>(step)])];
    }
    Bytes sent(int rank_class, int step);
    /// Of the only class's collective, which takes so long by itself: what it shares links by with those of the class's
    /// other communicators. Nothing where none of them meet.
    std::vector<FlowPhase> shared_phases(int rank_class, int step, Seconds alone);
    const std::vector<std::pair<Collectives::Span, int>>& spans(OneCall& call);

    int number(int rank_class, int step) const {
        return call_of_[static_cast<std::size_t>(rank_class)][static_cast<std::size_t>(step)];
    }
    /// Classes that send to this one, or take part in a collective of its.
    const std::vector<int>& senders_to(int rank_class) const { return senders_[static_cast<std::size_t>(rank_class)]; }
    /// What the ranks of a class compute on cores that others share (Steps::cores), or nothing: all in one step of the
    /// compute stream, in seconds on a core of its own.
    std::span<const FlowPhase> work(int rank_class, int step) const {
        const std::vector<FlowPhase>& of_class = work_[static_cast<std::size_t>(rank_class)];
        if (of_class.empty()) return {};
        return std::span{of_class}.subspan(static_cast<std::size_t>(step), 1);
    }
    /// Whether the only class has several communicators.
    bool several() const { return several_; }
    FlowAggregates& aggregates() { return aggregates_; }
    int tracked(int aggregate) const { return tracked_[static_cast<std::size_t>(aggregate)]; }

private:
    void add_message(int c, int step, const Send& send);
    void add_call(int c, int step, const Communicate& communicate);
    struct Messages;
    std::map<std::pair<int, int>, Messages> messages_of(const Phase& phase,
                                                        const std::vector<rehearse::Message>& of_round,
                                                        const Groups& groups, int lead) const;
    void add_phases(int c, const Communicate& communicate, OfClass& of);
    void stretch_library_calls();
    std::vector<int> classes_with(int c, const Groups& groups) const;
    void tell(int c, int other);
    void add_work(int c);
    void find_shared();
    bool communicators_meet();
    int add_aggregate(const std::vector<Flow>& flows, const std::vector<int>& filled_by = {});

    const KindSteps& steps_;
    const Wiring& wiring_;
    Collectives& collectives_;
    LibraryCalls library_;
    Traffic* traffic_;
    FlowAggregates aggregates_;
    // By the classes whose devices they fill, and a hash of the flows.
    std::map<std::vector<int>, std::unordered_multimap<std::uint64_t, std::pair<std::vector<Flow>, int>>> known_;
    std::vector<int> tracked_;  // by aggregate: its number in the traffic
    std::map<std::tuple<int, int, std::int64_t>, std::pair<int, int>>
        aggregate_of_;                                                          // class, axis, offset: peer, aggregate
    std::map<std::tuple<int, int, std::int64_t, double>, Message> message_of_;  // and bytes
    std::vector<std::vector<FlowPhase>> work_;           // by class and step; of a class with cores of its own none
    std::vector<std::vector<const Message*>> messages_;  // by class and step
    std::vector<OneCall> calls_;
    std::vector<std::vector<int>> call_of_;  // by class and step: index into calls_
    std::vector<std::vector<int>> senders_;  // by class
    bool kernels_meet_ = false;              // of a library: several streams of a class have some
    bool several_ = false;                   // communicators of the only class
    bool shares_ = false;                    // links: these
    std::map<Stream, int> filling_;          // of each of them where ranks are too many: fills one link for all
};

}  // namespace rehearse::sim
