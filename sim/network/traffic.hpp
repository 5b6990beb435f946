// SPDX-License-Identifier: Apache-2.0
// What each link carried, and when: for timelines whose reader asked for it.
#pragma once

#include <map>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/timeline.hpp"
#include "sim/collective/rounds.hpp"
#include "sim/network/wiring.hpp"

namespace rehearse::sim {

class Traffic {
public:
    /// Single links beyond these, the busiest first, are only counted with those of their kind.
    static constexpr std::size_t listed = 1024;
    static constexpr std::size_t drawn = 256;  // of the listed ones, where it is known when each message went
    /// A link's rate over time has at most so many points; beyond, the means of so many equal spans of time.
    static constexpr std::size_t points = 1000;

    explicit Traffic(const Wiring& wiring) : wiring_(wiring) {}

    /// Flows that always carry the same at the same time, by their sizes; a number for `add`.
    int aggregate(std::span<const Flow> flows);
    /// A flow of size 1.
    int aggregate(const Flow& flow);
    /// A flow of size 1 of the aggregate carries so much, evenly from start to end, the others by their sizes.
    void add(int aggregate, Bytes of_one, Seconds start, Seconds end);
    /// Adds links and their counters, of this many iterations of `length` after each other.
    void report(Timeline& timeline, int iterations = 1, Seconds length = {}) const;

private:
    struct Rate {
        double start = 0, end = 0, rate = 0;
    };
    struct Aggregate {
        std::vector<Flow> flows;
        std::vector<std::pair<std::int64_t, double>> kinds;  // Wiring::alike, sizes on all these links together
        double bytes = 0;                                    // of a flow of size 1
        std::vector<Rate> rates;                             // of a flow of size 1
    };
    /// By link.
    std::vector<double> bytes_on_links() const;
    std::vector<std::int64_t> busiest(const std::vector<double>& on_link) const;
    std::unordered_map<std::int64_t, std::vector<Rate>> rates_on(std::span<const std::int64_t> links) const;
    void report_kinds(Timeline& timeline, const std::vector<double>& on_link, int iterations, double length) const;
    void report_links(Timeline& timeline, const std::vector<double>& on_link, int iterations, double length) const;

    const Wiring& wiring_;
    std::vector<Aggregate> aggregates_;
    std::map<std::pair<std::int64_t, std::int64_t>, int> single_;  // aggregates of one flow
};

}  // namespace rehearse::sim
