// SPDX-License-Identifier: Apache-2.0
// Which messages one rank sends and receives in each round of a collective.
#pragma once

#include <map>
#include <unordered_map>
#include <vector>

#include "core/schedule.hpp"
#include "sim/groups.hpp"
#include "sim/wiring.hpp"

namespace rehearse::sim {

/// A message as one of its ends sees it.
struct Exchange {
    std::int64_t peer = 0;  // rank
    Bytes bytes;
    bool sends = false;
    Seconds afterwards;  // from its last byte's leaving until this end is free: latency, and combining where received
};

/// Rounds are made when the first rank comes to them and forgotten when all have passed, so that a long ring over many
/// ranks is never held as a whole.
class Exchanges {
public:
    /// InputError when a collective cannot serve its ranks.
    Exchanges(const Schedule& schedule, const Wiring& wiring);

    std::int64_t rounds(int rank_class, int step) const;
    std::vector<Exchange> of(int rank_class, int step, std::int64_t round, std::int64_t rank);
    /// Of a Send or Recv.
    Exchange peer(std::int64_t rank, int axis, std::int64_t offset, Bytes bytes, bool sends) const;

private:
    struct Round {
        std::vector<Transfer> transfers;
        std::vector<std::int32_t> of_member;  // indices into transfers, member after member
        std::vector<std::int32_t> ends;       // where each member's end
        std::int64_t visits = 0;
    };
    struct Collective {
        AllReduceBucket bucket;
        Groups groups;
        AllReduce rounds;
        std::int64_t visitors = 0;  // ranks that take part
        std::unordered_map<std::int64_t, Round> open;
    };
    Exchange seen_by(const Collective& collective, std::int64_t group, const Transfer& transfer, bool sends) const;
    Exchange message(std::int64_t rank, std::int64_t peer, Bytes bytes, bool sends, bool reduces) const;

    const Schedule& schedule_;
    const Wiring& wiring_;
    std::map<std::pair<int, int>, Collective> collectives_;  // by class and step
};

}  // namespace rehearse::sim
