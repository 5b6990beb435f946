// SPDX-License-Identifier: Apache-2.0
// Rings: one through all ranks, several over a node's links, or one for each rank of a node.
#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "core/collectives/patterns.hpp"

namespace rehearse {

namespace {

using PartOf = std::function<Range(std::int64_t rank)>;

// Ring (Patarasu and Yuan 2009). Four ranks, which chunk each sends in each round, reduce | spread:
//   rank 0: 3 2 1 | 0 3 2     rank r passes chunk r - 1 - k on to r + 1, which adds its own part; after n - 1 rounds
//   rank 1: 0 3 2 | 1 0 3     rank r has the sum of chunk r, and the same chain carries the sums around.
// Here the p-th rank of the ring is at(p), and what stays with a rank is its part.
Rounds one_ring(std::int64_t n, const RankMap& at, const PartOf& part, Combine combine) {
    const std::int64_t ahead = combine == Combine::reduce ? 1 : 0;
    return alike(n - 1, [n, at, part, combine, ahead](std::int64_t round, const Sink& add) {
        for (std::int64_t p = 0; p < n; ++p) {
            const Range range = part(at((p + n - ahead - round) % n));
            add({at(p), at((p + 1) % n), range.begin, range.end, combine});
        }
    });
}

// What of a range lies between two shares of it.
Range between(Range range, double from, double to) {
    const auto at = [&](double share) {
        return range.begin + std::llround(share * static_cast<double>(range.end - range.begin));
    };
    return {at(from), at(to)};
}

Rounds ring(const Group& group, Range whole, Combine combine) {
    const std::int64_t n = group.size, local = group.per_node;
    const auto own = [n, whole](std::int64_t rank) { return chunk(n, whole, rank); };
    if (group.rings == nullptr || n % local != 0) {
        return one_ring(
            n, [](std::int64_t place) { return place; }, own, combine);
    }
    const auto along = [local, rings = group.rings](std::size_t c) {
        return [local, rings, c](std::int64_t place) {
            return place - place % local + (*rings)[c].order[static_cast<std::size_t>(place % local)];
        };
    };
    if (n > local) return one_ring(n, along(0), own, combine);
    std::vector<Rounds> parts;
    double from = 0;
    for (std::size_t c = 0; c < group.rings->size(); ++c) {
        const double to = c + 1 == group.rings->size() ? 1 : from + (*group.rings)[c].share;
        const auto part = [own, from, to](std::int64_t rank) { return between(own(rank), from, to); };
        parts.push_back(one_ring(n, along(c), part, combine));
        from = to;
    }
    return joined(side_by_side(std::move(parts)));
}

}  // namespace

Rounds ring_reduce(const Group& group, Range whole) { return ring(group, whole, Combine::reduce); }
Rounds ring_spread(const Group& group, Range whole) { return ring(group, whole, Combine::copy); }

namespace {

// Whether a node's links join the pairs of ranks next to each other in all zigzags: all pairs.
bool joins_all_pairs(const std::vector<NodeRing>& rings, std::int64_t local) {
    std::set<std::pair<std::int64_t, std::int64_t>> pairs;
    for (const NodeRing& ring : rings) {
        for (std::size_t i = 0; i < ring.order.size(); ++i) {
            pairs.emplace(ring.order[i], ring.order[(i + 1) % ring.order.size()]);
        }
    }
    return std::ssize(pairs) == local * (local - 1);
}

// The ranks of a node of `local` in the order in which the ring that comes to it at rank c goes through them.
std::vector<std::int64_t> way_through(const Group& group, std::int64_t local, std::int64_t c) {
    std::vector<std::int64_t> way;
    if (group.rings == nullptr || joins_all_pairs(*group.rings, group.per_node)) {
        for (std::int64_t step = 0; step < local; ++step) {
            const std::int64_t zigzag = step % 2 == 1 ? (step + 1) / 2 : local - step / 2;
            way.push_back((c + zigzag) % local);
        }
        return way;
    }
    std::vector<std::int64_t> order = group.rings->front().order;
    std::erase_if(order, [local](std::int64_t rank) { return rank >= local; });
    const std::int64_t place = std::ranges::find(order, c) - order.begin();
    for (std::int64_t step = 0; step < local; ++step) {
        const std::int64_t at = place % 2 == 0 ? place + step : place + local - step;
        way.push_back(order[static_cast<std::size_t>(at % local)]);
    }
    return way;
}

// As many rings through all ranks as each node has of them, and where each goes: by the network card of each rank of a
// node (as NCCL lays its channels). Ring c comes to a node at its rank c, zigzags through the others, and leaves at c +
// per_node / 2: of an even number, each rank of a node sends to each other one in one of the rings (Williams 1949).
//   four a node   ring 0: 0 1 3 2   ring 1: 1 2 0 3   ring 2: 2 3 1 0   ring 3: 3 0 2 1
// Where the node's links do not join all pairs, rings go along a ring over those that there are, every second one the
// other way round: so each rank is the last of a node once, too. Where the last node has fewer ranks there are as many
// rings as it has. Nothing where one node has all ranks, or each node has one.
std::vector<RankMap> ways(const Group& group) {
    const std::int64_t local = group.per_node, n = group.size, last = n % local;
    if (local == 1 || n <= local) return {};
    std::vector<RankMap> all;
    for (std::int64_t c = 0; c < (last == 0 ? local : last); ++c) {
        all.emplace_back([way = way_through(group, local, c), short_way = way_through(group, last, c), local,
                          begin_of_last = n - last](std::int64_t place) {
            const std::int64_t in_node = place % local;
            const std::vector<std::int64_t>& of = place < begin_of_last ? way : short_way;
            return place - in_node + of[static_cast<std::size_t>(in_node)];
        });
    }
    return all;
}

Rounds rings_half(const Group& group, Range whole, Combine combine) {
    const std::vector<RankMap> each = ways(group);
    if (each.empty()) return ring(group, whole, combine);
    const auto count = static_cast<std::int64_t>(each.size());
    std::vector<Rounds> parts;
    for (std::int64_t c = 0; c < count; ++c) {
        const auto part = [whole, n = group.size, count, c](std::int64_t rank) {
            return chunk(count, chunk(n, whole, rank), c);
        };
        parts.push_back(one_ring(group.size, each[static_cast<std::size_t>(c)], part, combine));
    }
    return joined(side_by_side(std::move(parts)));
}

}  // namespace

Rounds rings_reduce(const Group& group, Range whole) { return rings_half(group, whole, Combine::reduce); }
Rounds rings_spread(const Group& group, Range whole) { return rings_half(group, whole, Combine::copy); }

Rounds rings(const Task& task) {
    const std::vector<RankMap> each = ways(task.group);
    if (each.empty()) return flat_all_reduce("ring", task.group, task.whole);
    const auto count = static_cast<std::int64_t>(each.size());
    std::vector<Rounds> parts;
    for (std::int64_t c = 0; c < count; ++c) {
        const Rounds one = flat_all_reduce("ring", {task.group.size, 1}, chunk(count, task.whole, c));
        parts.push_back(renamed(one, each[static_cast<std::size_t>(c)]));
    }
    return joined(side_by_side(std::move(parts)));
}

}  // namespace rehearse
