// SPDX-License-Identifier: Apache-2.0
// Collectives whose ranks fall out of step, followed message by message.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "sim/collective/patterns.hpp"
#include "sim/network/max_min.hpp"
#include "sim/network/wiring.hpp"

namespace rehearse::sim {

/// What rounds of messages cross, on links numbered as they come into use.
class Tracks {
public:
    explicit Tracks(const Wiring& wiring) : wiring_(wiring) {}

    struct Track {
        const Pattern* pattern = nullptr;
        std::vector<std::int32_t> links;                  // of all messages, one after the other
        std::vector<double> weights;                      // of them, where a byte does not take a byte of the link
        std::vector<std::int32_t> ends;                   // by message: of its links
        std::vector<PerByte> alone;                       // by message: on its slowest link
        std::vector<std::int32_t> of_rank, ends_of_rank;  // messages of each rank, sent or received

        MaxMin::Route route(std::int32_t message) const;
        std::span<const std::int32_t> messages_of(RankIndex rank) const;
    };
    /// The pattern must outlive this.
    const Track& of(const Pattern& pattern, std::int64_t ranks);
    /// Bytes a second, by link.
    const std::vector<double>& capacities() const { return capacities_; }
    const Wiring& wiring() const { return wiring_; }

private:
    const Wiring& wiring_;
    std::unordered_map<const Pattern*, Track> known_;
    std::unordered_map<std::int64_t, std::int32_t> numbers_;  // by Wiring's link
    std::vector<double> capacities_;
};

/// Collectives one after the other on each rank. A message starts when both its ends have come to its round, shares
/// links max-min with whatever else is under way, and occupies both ends until a latency after its last byte (and its
/// receiver until it has combined it); a rank goes on when its own messages of the round are over: as exact.hpp.
class FollowedRow {
public:
    /// Keeps a reference. When each rank can begin.
    FollowedRow(Tracks& tracks, std::vector<double> ready);

    /// The next collective, of `whole` bytes, from `earliest` on: when each rank has ended it. Nothing that came before
    /// is followed again, but for what goes on when the first rank ends the row. Takes what it costs (MaxMin::work) off
    /// `work`; nothing when that is not enough, and then the row can't go on.
    std::optional<std::vector<double>> append(const std::vector<Stage>& stages, Bytes whole, Seconds earliest,
                                              std::int64_t& work);

private:
    struct SizedStage {
        const Tracks::Track* track = nullptr;
        std::int64_t repeats = 1;
        double earliest = 0;
        std::vector<double> bytes, sent, received;  // by cost: of a message, and how long its ends are busy after it
    };
    struct Rank {
        std::size_t stage = 0;
        std::int64_t round = 0;    // of the stage's
        std::int32_t pending = 0;  // messages of the round that are not over; 0: not in it yet
        double when = 0;
    };
    struct Coming {
        double time = 0;
        std::int32_t rank = 0;
    };
    struct State {
        MaxMin flows;
        std::vector<Rank> ranks;
        std::vector<Coming> coming;  // a heap: ranks that come to their next rounds
    };
    static bool later(const Coming& a, const Coming& b) { return a.time > b.time; }

    SizedStage sized(const Stage& stage, Bytes whole, double earliest);
    bool run(State& state, bool until_first_ends, std::int64_t& work);
    void come(State& state, std::int32_t rank, double when);
    void enter(State& state, std::int32_t rank);
    void over(State& state, std::size_t stage, std::int32_t message, double time);
    void free(State& state, std::int32_t rank, double when);

    Tracks& tracks_;
    double origin_;
    std::vector<SizedStage> stages_;
    State state_;                      // when the first rank ends the row
    std::vector<std::int64_t> ended_;  // scratch
};

}  // namespace rehearse::sim
