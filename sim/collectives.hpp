// SPDX-License-Identifier: Apache-2.0
// Prices collectives round by round: all transfers of a round, of all groups along the axis, on the whole fabric at
// once.
#pragma once

#include <map>
#include <memory>
#include <unordered_map>
#include <vector>

#include "core/schedule.hpp"
#include "sim/groups.hpp"
#include "sim/rounds.hpp"

namespace rehearse::sim {

/// A rank enters a round when its part of the one before is over, so fast pairs run ahead of slow ones until they meet;
/// each message costs what it would if all of its round started together (see rounds.hpp). Sizes that differ by one
/// element count as equal, at their mean. Rounds that are alike are counted once, however many and in whichever bucket;
/// a long row of them is followed until the ranks' pace is steady (at most `settle` rounds), then continued at that
/// pace.
class Collectives {
public:
    static constexpr int settle = 32;

    Collectives(const Mesh& mesh, const Wiring& wiring);

    /// `ready`: when each rank of the machine may begin (minus infinity: it does not take part). Afterwards, when each
    /// has ended. InputError when the algorithm cannot serve the ranks.
    void run(const AllReduceBucket& bucket, std::vector<double>& ready);
    /// What one rank sends, over all rounds.
    Bytes sent(const AllReduceBucket& bucket, std::int64_t rank);
    /// Messages of all groups and rounds.
    std::int64_t messages(const AllReduceBucket& bucket);

private:
    struct Message {
        std::int32_t from = 0, to = 0;  // ranks
        FlowCost cost;
        PerByte combine;
    };
    using Pattern = std::vector<Message>;
    struct Stage {
        std::shared_ptr<const Pattern> pattern;
        std::int64_t repeats = 1;
        double share = 0;  // of the bucket's elements, in each message
        bool reduces = false;
    };
    struct Key {
        int axis = 0;
        std::string algorithm;
        std::int64_t elements = 0;  // 0: any number large enough to be cut evenly
        auto operator<=>(const Key&) const = default;
    };
    const std::vector<Stage>& stages_of(const AllReduceBucket& bucket);
    Stage make_stage(const AllReduceBucket& bucket, const Groups& groups, const AllReduce& rounds, Phase phase);
    std::shared_ptr<const Pattern> pattern_of(const Groups& groups, const std::vector<Transfer>& transfers);
    Pattern solved(const Groups& groups, const std::vector<Transfer>& transfers, DataType type) const;
    bool steady(const std::vector<double>& ready) const;
    void advance(const Stage& stage, Bytes bytes, std::vector<double>& ready);

    const Mesh& mesh_;
    const Wiring& wiring_;
    RoundCounter counter_;
    std::map<Key, std::vector<Stage>> programs_;
    std::unordered_multimap<std::uint64_t, std::shared_ptr<const Pattern>> patterns_;  // by a hash of who sends to whom
    std::vector<double> before_;
};

}  // namespace rehearse::sim
