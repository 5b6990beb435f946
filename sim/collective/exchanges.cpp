// SPDX-License-Identifier: Apache-2.0
#include "sim/collective/exchanges.hpp"

#include <algorithm>
#include <utility>

#include "core/error.hpp"

namespace rehearse::sim {

namespace {

// Sorts messages by the members at their ends.
void index(std::vector<std::int32_t>& of_member, std::vector<std::int32_t>& ends, const std::vector<Message>& messages,
           std::int64_t members) {
    ends.assign(static_cast<std::size_t>(members) + 1, 0);
    for (const Message& p : messages) {
        ++ends[static_cast<std::size_t>(p.from) + 1];
        ++ends[static_cast<std::size_t>(p.to) + 1];
    }
    for (std::size_t m = 1; m < ends.size(); ++m) ends[m] += ends[m - 1];
    std::vector<std::int32_t> next(ends.begin(), ends.end() - 1);
    of_member.resize(2 * messages.size());
    for (std::size_t i = 0; i < messages.size(); ++i) {
        for (const std::int64_t m : {messages[i].from, messages[i].to}) {
            of_member[static_cast<std::size_t>(next[static_cast<std::size_t>(m)]++)] = static_cast<std::int32_t>(i);
        }
    }
}

Exchange message(const Wiring& wiring, RankIndex rank, RankIndex peer, Bytes bytes, bool sends, double passes) {
    std::vector<Hop> hops;
    const std::int64_t from = sends ? rank : peer;
    const std::int64_t to = sends ? peer : rank;
    Seconds afterwards = wiring.route(from, to, hops);
    const PerByte alone = std::ranges::max(hops, {}, &Hop::cost).cost;
    afterwards += wiring.beyond(wiring.across(from, to), bytes, alone);
    if (!sends) afterwards += passes * (wiring.combine(from, to) * bytes);
    return {peer, bytes, sends, afterwards};
}

}  // namespace

Exchanges::Exchanges(const Mesh& mesh, const Call& call, const Wiring& wiring, std::int64_t visitors)
    : Exchanges(groups_along(mesh, call.axis, call.algorithm, wiring), call, wiring, visitors) {}

Exchanges::Exchanges(Groups groups, const Call& call, const Wiring& wiring, std::int64_t visitors)
    : wiring_(wiring),
      type_(call.type),
      groups_(std::move(groups)),
      in_switch_(in_switch(call, groups_, wiring)),
      rounds_(rounds_of(in_switch_ ? in_switch_->rounds(call) : call, groups_)),
      visitors_(visitors) {}

std::vector<Exchange> Exchanges::of(std::int64_t round, RankIndex rank) {
    const auto [entry, fresh] = open_.try_emplace(round);
    Round& made = entry->second;
    if (fresh) {
        made.messages = rounds_.messages(round);
        index(made.of_member, made.ends, made.messages, groups_.shape.size);
    }
    const std::int64_t member = groups_.member_of(rank);
    const auto m = static_cast<std::size_t>(member);
    std::vector<Exchange> mine;
    for (auto i = static_cast<std::size_t>(made.ends[m]); i < static_cast<std::size_t>(made.ends[m + 1]); ++i) {
        const Message& one = made.messages[static_cast<std::size_t>(made.of_member[i])];
        mine.push_back(seen_by_member(one, groups_.group_of(rank), one.from == member));
    }
    if (++made.visits == visitors_) open_.erase(entry);
    return mine;
}

Exchange Exchanges::seen_by_member(const Message& one, std::int64_t group, bool sends) const {
    const RankIndex from = groups_.rank(group, one.from);
    const RankIndex to = groups_.rank(group, one.to);
    if (in_switch_ && in_switch_->covers(wiring_.across(from, to))) {
        return {sends ? to : from, in_switch_->bytes * bytes_of(one, type_), sends, in_switch_->stretched(wiring_)};
    }
    return message(wiring_, sends ? from : to, sends ? to : from, bytes_of(one, type_), sends, passes(one.combine));
}

Exchange point_to_point(const Mesh& mesh, const Wiring& wiring, RankIndex rank, const Send& send) {
    return message(wiring, rank, neighbour(mesh, send.axis, rank, send.offset), send.bytes, true, 0);
}

Exchange point_to_point(const Mesh& mesh, const Wiring& wiring, RankIndex rank, const Recv& recv) {
    return message(wiring, rank, neighbour(mesh, recv.axis, rank, recv.offset), recv.bytes, false, 0);
}

Exchange point_to_point(const Wiring& wiring, RankIndex rank, RankIndex peer, Bytes bytes, bool sends) {
    return message(wiring, rank, peer, bytes, sends, 0);
}

}  // namespace rehearse::sim
