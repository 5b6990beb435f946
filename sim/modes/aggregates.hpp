// SPDX-License-Identifier: Apache-2.0
// Flow aggregates: the messages that all ranks of a class send at once, as one flow with weights.
#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "sim/collective/rounds.hpp"
#include "sim/host/cores.hpp"
#include "sim/network/max_min.hpp"
#include "sim/network/wiring.hpp"

namespace rehearse::sim {

/// All flows of an aggregate begin and end together, with the slowest. So the aggregate is one flow of MaxMin, whose
/// weight on a link is the sum of the sizes of its flows there times the seconds that a byte takes: every link carries
/// one second a second. As links are shared evenly by flows, whatever their sizes, these are relative to the mean of
/// those on the link that holds the aggregate up most. Links with the same weights are one, and links that can never be
/// full before another are left out.
class FlowAggregates {
public:
    explicit FlowAggregates(const Wiring& wiring) : wiring_(wiring) {}

    /// Adds these messages and returns the aggregate's number. All are added before the first is asked about.
    int add(std::span<const Flow> flows);
    /// Adds ranks that compute, whose bytes are seconds on a core of their own, and returns the aggregate's number.
    int add_work(const Cores& cores, std::span<const RankIndex> ranks);
    /// Adds what fills a link that all such aggregates share, whose bytes are the seconds that it takes by itself, and
    /// returns the aggregate's number.
    int add_filling();

    /// One more link that the aggregate fills by itself: the same for all that fill it with this number.
    void fill(int aggregate, int number);

    /// The size of the flows that its bytes and rates are of.
    double size(int aggregate) const { return aggregates_[static_cast<std::size_t>(aggregate)].size; }
    /// From when the last of a message's bytes has left until it is there; `bytes` are those of the largest.
    Seconds latency(int aggregate, Bytes bytes) const;
    /// Whether one could slow the other down.
    bool meet(int a, int b);
    /// Bytes a second while nothing else is under way.
    double rate_alone(int aggregate);
    /// How many links there are for MaxMin, of one second a second each.
    std::size_t links();
    /// What it takes of these links.
    MaxMin::Route route(int aggregate);

private:
    /// What an aggregate takes of a link: seconds for one of its bytes.
    struct Weight {
        int aggregate = 0;
        double cost = 0;
        auto operator<=>(const Weight&) const = default;
    };
    using LinkWeights = std::vector<Weight>;  // by aggregate
    void relate(int number, std::span<const Hop> hops, std::span<const double> sizes);
    void reduce();
    static std::vector<LinkWeights> without_lighter(std::vector<LinkWeights> links, std::size_t aggregates);

    /// Of an aggregate: the longest of its messages' routes, and what it takes of the links that were kept.
    struct Aggregate {
        Seconds latency;
        PerByte alone;    // of the message that takes longest on its slowest hop, by byte of the largest
        double size = 1;  // of flows on the link that holds it up most
        bool across = false;
        std::vector<std::int32_t> links{};
        std::vector<double> weights{};
    };
    const Wiring& wiring_;
    std::vector<Aggregate> aggregates_;
    std::unordered_map<std::int64_t, LinkWeights> found_;  // by link, until reduced
    std::size_t links_ = 0;                                // that were kept; 0 until reduced
};

}  // namespace rehearse::sim
