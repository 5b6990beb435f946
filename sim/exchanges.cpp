// SPDX-License-Identifier: Apache-2.0
#include "sim/exchanges.hpp"

#include <fmt/format.h>

#include "core/error.hpp"

namespace rehearse::sim {

Exchanges::Exchanges(const Schedule& schedule, const Wiring& wiring) : schedule_(schedule), wiring_(wiring) {
    const auto classes = static_cast<std::int64_t>(schedule.classes.size());
    for (std::size_t c = 0; c < schedule.classes.size(); ++c) {
        for (std::size_t s = 0; s < schedule.classes[c].steps.size(); ++s) {
            const auto* bucket = std::get_if<AllReduceBucket>(&schedule.classes[c].steps[s].action);
            if (bucket == nullptr) continue;
            const Groups groups = groups_along(schedule.mesh, bucket->axis, bucket->algorithm, wiring);
            collectives_.insert({{static_cast<int>(c), static_cast<int>(s)},
                                 {*bucket, groups, rounds_of(*bucket, groups), ranks(schedule.mesh) / classes, {}}});
        }
    }
}

std::int64_t Exchanges::rounds(int rank_class, int step) const {
    return collectives_.at({rank_class, step}).rounds.rounds();
}

namespace {

// Sorts transfers by the members at their ends.
void index(std::vector<std::int32_t>& of_member, std::vector<std::int32_t>& ends,
           const std::vector<Transfer>& transfers, std::int64_t members) {
    ends.assign(static_cast<std::size_t>(members) + 1, 0);
    for (const Transfer& t : transfers) {
        ++ends[static_cast<std::size_t>(t.from) + 1];
        ++ends[static_cast<std::size_t>(t.to) + 1];
    }
    for (std::size_t m = 1; m < ends.size(); ++m) ends[m] += ends[m - 1];
    std::vector<std::int32_t> next(ends.begin(), ends.end() - 1);
    of_member.resize(2 * transfers.size());
    for (std::size_t i = 0; i < transfers.size(); ++i) {
        for (const std::int64_t m : {transfers[i].from, transfers[i].to}) {
            of_member[static_cast<std::size_t>(next[static_cast<std::size_t>(m)]++)] = static_cast<std::int32_t>(i);
        }
    }
}

}  // namespace

std::vector<Exchange> Exchanges::of(int rank_class, int step, std::int64_t round, std::int64_t rank) {
    Collective& collective = collectives_.at({rank_class, step});
    const auto [entry, fresh] = collective.open.try_emplace(round);
    Round& made = entry->second;
    if (fresh) {
        made.transfers = collective.rounds.round(round);
        index(made.of_member, made.ends, made.transfers, collective.groups.shape.size);
    }
    const std::int64_t member = collective.groups.member_of(rank);
    const std::int64_t group = collective.groups.group_of(rank);
    std::vector<Exchange> mine;
    for (std::int32_t i = made.ends[static_cast<std::size_t>(member)];
         i < made.ends[static_cast<std::size_t>(member) + 1]; ++i) {
        const Transfer& t = made.transfers[static_cast<std::size_t>(made.of_member[static_cast<std::size_t>(i)])];
        mine.push_back(seen_by(collective, group, t, t.from == member));
    }
    if (++made.visits == collective.visitors) collective.open.erase(entry);
    return mine;
}

Exchange Exchanges::seen_by(const Collective& collective, std::int64_t group, const Transfer& transfer,
                            bool sends) const {
    const std::int64_t from = collective.groups.rank(group, transfer.from);
    const std::int64_t to = collective.groups.rank(group, transfer.to);
    const Bytes bytes = bytes_of(transfer, collective.bucket.type);
    return message(sends ? from : to, sends ? to : from, bytes, sends, transfer.combine == Combine::reduce);
}

Exchange Exchanges::message(std::int64_t rank, std::int64_t peer, Bytes bytes, bool sends, bool reduces) const {
    std::vector<Hop> hops;
    const std::int64_t from = sends ? rank : peer, to = sends ? peer : rank;
    Seconds afterwards = wiring_.route(from, to, hops);
    if (!sends && reduces) afterwards += wiring_.combine(from, to) * bytes;
    return {peer, bytes, sends, afterwards};
}

Exchange Exchanges::peer(std::int64_t rank, int axis, std::int64_t offset, Bytes bytes, bool sends) const {
    std::vector<std::int64_t> at = coordinates(schedule_.mesh, rank);
    const Axis& along = schedule_.mesh.axes[static_cast<std::size_t>(axis)];
    at[static_cast<std::size_t>(axis)] += offset;
    require(at[static_cast<std::size_t>(axis)] >= 0 && at[static_cast<std::size_t>(axis)] < along.size,
            "a message stays on its axis");
    return message(rank, rank_at(schedule_.mesh, at), bytes, sends, false);
}

}  // namespace rehearse::sim
