// SPDX-License-Identifier: Apache-2.0
// Which messages one rank sends and receives in each round of a collective.
#pragma once

#include <optional>
#include <unordered_map>
#include <vector>

#include "core/schedule.hpp"
#include "sim/collective/groups.hpp"
#include "sim/collective/in_switch.hpp"
#include "sim/network/wiring.hpp"

namespace rehearse::sim {

/// A message as one of its ends sees it.
struct Exchange {
    RankIndex peer{0};  // rank
    Bytes bytes;
    bool sends = false;
    Seconds afterwards;  // from its last byte's leaving until this end is free: latency, and combining where received
};

/// Of one collective, run by all groups along its axis. Rounds are made when the first rank comes to them and forgotten
/// when all have passed, so that a long ring over many ranks is never held as a whole.
class Exchanges {
public:
    /// `visitors` ranks will ask for each round. InputError when the algorithm cannot serve the ranks.
    Exchanges(const Mesh& mesh, const Call& call, const Wiring& wiring, std::int64_t visitors);
    Exchanges(Groups groups, const Call& call, const Wiring& wiring, std::int64_t visitors);

    std::int64_t rounds() const { return rounds_.rounds(); }
    std::vector<Exchange> of(std::int64_t round, RankIndex rank);

private:
    struct Round {
        std::vector<Message> messages;
        std::vector<std::int32_t> of_member;  // indices into messages, member after member
        std::vector<std::int32_t> ends;       // where each member's end
        std::int64_t visits = 0;
    };
    Exchange seen_by_member(const Message& one, std::int64_t group, bool sends) const;

    const Wiring& wiring_;
    DataType type_;
    Groups groups_;
    std::optional<InSwitch> in_switch_;
    Collective rounds_;
    std::int64_t visitors_;
    std::unordered_map<std::int64_t, Round> open_;
};

/// A collective that no rank enters before `earliest`.
struct Begun {
    Call call;
    Seconds earliest;
};

/// Of a Send or Recv.
Exchange point_to_point(const Mesh& mesh, const Wiring& wiring, RankIndex rank, const Send& send);
Exchange point_to_point(const Mesh& mesh, const Wiring& wiring, RankIndex rank, const Recv& recv);
/// A message between two ranks as `rank`, which sends or receives it, sees it.
Exchange point_to_point(const Wiring& wiring, RankIndex rank, RankIndex peer, Bytes bytes, bool sends);

}  // namespace rehearse::sim
