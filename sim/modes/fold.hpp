// SPDX-License-Identifier: Apache-2.0
// How folded mode works through the programs of all rank classes. Included by this folder's sources only.
#pragma once

#include <optional>
#include <vector>

#include "sim/modes/calls.hpp"
#include "sim/modes/fold_state.hpp"
#include "sim/network/traffic.hpp"

namespace rehearse::sim {

/// Works through all classes' streams. A step's times follow from what it waits for, so it does not matter in which
/// order steps are taken, as long as each stream's are in order. What is called a class here is a kind of ranks
/// (kinds.hpp).
class Fold {
public:
    Fold(const KindSteps& steps, Collectives& collectives, Calls& calls, Traffic* traffic);
    void run();
    /// Returns the events of one iteration that starts at 0, on the first rank of the class, in order of their starts.
    std::vector<Event> events(int c) const;
    /// How long one iteration takes, from the first start to the last end.
    Seconds length() const;
    /// Messages of one iteration, and arrows between a message's two ends.
    std::int64_t flows() const { return flows_; }
    std::int64_t arrows() const { return arrows_; }

private:
    /// A class's part in a collective of several.
    struct Member {
        int rank_class = 0, step = 0;
        double start = 0;
    };
    /// Notes that something of the class, or what its receives wait for, has ended.
    void touch(int c);
    void take_what_can_be();
    void end(int c, int step, double start, double end, Earlier earlier = {});
    bool take_next(int c, StreamState& stream);
    bool take_send(int c, int step, const Send& send, double start);
    bool take_collective(int c, StreamState& stream, int step, double needed);
    /// How much sooner than on the last rank of the only class all that the step waits for, and the stream where it is
    /// given, has ended on the others.
    Earlier waited_for(int step, const StreamState* stream) const;
    /// Takes the only class's collective, which may share links with those of its other communicators.
    void take_only(StreamState& stream, Calls::OneCall& call, int step, double needed);
    /// Ends it, as much later on every rank as it met others, and as extra() says.
    void end_only(StreamState& stream, int step, double start, double until);
    /// Takes a collective in whose groups are ranks of several classes: it begins when the last of these has come.
    bool take_together(int c, Stream stream, int step, const Calls::OfClass& own);
    /// Whether it is a computation on cores that others share.
    bool computes(const ActiveCollective& active) const;
    void set_out(const ActiveCollective& active, double start);
    void arrive(const ActiveCollective& active, double when);
    void arrive_together(const std::vector<Member>& members, double when);
    /// Returns when the last rank has ended the only class's collective. Ranks that ended the stream's last collective
    /// early enter this one early.
    double together(StreamState& stream, Calls::OneCall& call, int step, double needed);

    const KindSteps& steps_;
    Collectives& collectives_;
    Calls& calls_;
    std::vector<ClassState> classes_;
    ActiveCollectives active_;
    Traffic* traffic_;
    std::vector<std::vector<Member>> together_;
    bool rank_by_rank_ = false;     // the only class's ranks are followed from one communicator to another
    double crowding_ = 1;           // of the only class's ranks, which all compute at the same time
    std::vector<int> touched_;      // classes some of whose steps may be ready now, each once
    std::vector<char> is_touched_;  // by class
    std::int64_t flows_ = 0, arrows_ = 0;
};

}  // namespace rehearse::sim
