// SPDX-License-Identifier: Apache-2.0
// Prices collectives round by round: all transfers of a round, of all groups along the axis, on the whole fabric at
// once.
#pragma once

#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "core/schedule.hpp"
#include "sim/collective/exchanges.hpp"
#include "sim/collective/follower.hpp"
#include "sim/collective/groups.hpp"
#include "sim/collective/in_step.hpp"
#include "sim/collective/libraries/library_times.hpp"
#include "sim/collective/patterns.hpp"
#include "sim/network/processor_sharing.hpp"

namespace rehearse::sim {

/// A rank enters a round when its part of the one before is over. While ranks are in step, a round costs what counting
/// says (rounds.hpp). A row of collectives that falls out of step is followed message by message (follower.hpp) while
/// that is not too much; beyond, flows that meet on a busy link share it from their own starts on, after what earlier
/// rounds left there: near to max-min over the whole fabric (README.md says how near), the same when in step.
/// Where no message holds another up, as on a ring with links of its own, counting is exact out of step, too: as long
/// as the row keeps to these pairs, since a pair has one message at a time.
/// Sizes that differ by one element count as equal, at their mean. Rounds that are alike are counted once, however many
/// and in whichever call; a long row of them is followed until the pace is known, then continued at that pace.
/// Large: beside what it prices, the memory that its inner loops use again.
class Collectives {
public:
    /// What falls out of step is followed on so few ranks, while a row has so few messages (a ring of 512 ranks), and
    /// the rows of a stream cost so little (MaxMin::work: half a second).
    static constexpr std::int64_t followed_ranks = 1024, few = 1 << 19, followed_work = 3'000'000;
    /// Beyond so many ranks a hierarchical all-reduce is priced in step (in_step.hpp), which is up to 2 % longer than
    /// following each rank (tests/sim/collectives_test.cpp).
    static constexpr std::int64_t many_ranks = 1 << 16;
    static constexpr std::int64_t any_number = std::numeric_limits<std::int64_t>::max();

    /// Where a stream of collectives has got to, by rank and by link; times are seconds.
    struct Progress {
        std::vector<double> ready;      // when each rank ended its last collective
        std::vector<double> drained;    // when each link has let go of all
        std::vector<Begun> row;         // collectives that began before the one before them had ended everywhere
        std::vector<double> row_ready;  // when each rank could begin the row
        std::int64_t row_messages = 0;
        std::shared_ptr<FollowedRow> followed;  // the first of them
        std::size_t followed_count = 0;
        std::int64_t work = followed_work;  // that may still go into following
        const Pattern* last_pattern = nullptr;
        bool same_pairs = true;  // of ranks, since all were in step: all patterns were that one

        void begin_row();
        void take(const Pattern& pattern);
        /// No message of its rounds meets another that could hold it up.
        bool undisturbed(const Pattern& pattern) const { return pattern.apart && same_pairs; }
    };

    /// Where there are more ranks than `rank_by_rank`, `spans` must not be asked for. What others of the same mesh and
    /// nodes have made before is only weighed with this wiring's costs; they must outlive these.
    Collectives(const Mesh& mesh, const Wiring& wiring, std::int64_t followed_messages = few,
                std::int64_t rank_by_rank = many_ranks, const Collectives* others = nullptr);

    /// The stream's next collective, from `earliest` on. InputError when the algorithm cannot serve the ranks.
    void run(const Call& call, Seconds earliest, Progress& progress);
    /// Something else has the stream until then.
    static void occupy(Progress& progress, Seconds until);
    /// Collectives that were not run here have kept every rank until then.
    static void catch_up(Progress& progress, Seconds until);
    /// Something else has the stream's ranks, each until so much sooner than `last`. Returns until when all of them.
    static double hold(Progress& progress, Seconds last, const std::vector<double>& sooner);
    /// The stream's last collective, if it ended at `over` on the last rank, ends at `until` there, and as much later
    /// on all others.
    static void delay(Progress& progress, Seconds over, Seconds until);
    /// What one rank, the first of its group, sends over all rounds.
    Bytes sent(const Call& call, RankIndex rank);
    /// Messages of all groups and rounds.
    std::int64_t messages(const Call& call);
    /// Alike rounds of a collective that all ranks begin together: the bytes of each message over all these rounds, and
    /// when they go, as shares of the collective's time.
    struct Span {
        std::shared_ptr<const Pattern> pattern;
        Bytes each;
        double begin = 0, end = 0;
    };
    std::vector<Span> spans(const Call& call);

private:
    struct Key {
        CollectiveKind kind = CollectiveKind::all_reduce;
        int axis = 0;
        std::string algorithm;
        std::int64_t elements = 0;  // 0: any number large enough to be cut evenly
        std::int64_t pieces = 1;    // of a pipeline
        std::int64_t root = 0;
        auto operator<=>(const Key&) const = default;
    };
    /// Of a library's collective, which all ranks enter together and leave together.
    Seconds library_time(const Call& call);
    bool in_step(const Call& call) const { return in_step_.has_value() && InStep::serves(call); }
    const std::vector<Stage>& stages_of(const Call& call);
    const std::vector<Stage>* made_elsewhere(const Key& key) const;
    Stage make_stage(const Call& call, const Groups& groups, const Collective& rounds, Phase phase);
    static std::int64_t followed_rounds(const Pattern& pattern, const Progress& progress);
    void count_through(const Call& call, Progress& progress, std::vector<double>* stage_ends = nullptr);
    double starts(const PatternMessage& m) const;
    void end(const PatternMessage& m, double sent, Progress& progress) const;
    void advance(const Stage& stage, Bytes bytes, Progress& progress);
    void advance_sharing(const Pattern& pattern, Bytes bytes, Progress& progress);
    void drain(const Pattern& pattern, Progress& progress) const;
    void follow(Progress& progress);

    const Mesh& mesh_;
    const Wiring& wiring_;
    std::int64_t followed_messages_;
    const Collectives* others_;
    Patterns patterns_;
    Tracks tracks_;
    SharedLink link_;
    std::map<Key, std::vector<Stage>> programs_;
    std::map<const std::vector<Stage>*, std::vector<double>> shares_;  // of the elements, that each rank sends
    struct Kind {
        double alone = 0, afterwards = 0, combining = 0;  // on its slowest link; latency and the like; what has come
    };
    std::vector<Kind> kinds_;          // scratch, by kind of message
    std::vector<double> start_, end_;  // scratch, by message
    std::vector<double> before_;       // scratch, by rank
    bool exact_ = true;                // so far: in each round of the collective all messages started together
    std::optional<InStep> in_step_;
    LibraryCalls library_;
    std::map<std::pair<Key, DataType>, Seconds> library_times_;
};

}  // namespace rehearse::sim
