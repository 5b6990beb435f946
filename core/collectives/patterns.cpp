// SPDX-License-Identifier: Apache-2.0
// All-reduces.
#include "core/collectives/patterns.hpp"

#include <algorithm>
#include <array>

#include "core/error.hpp"

namespace rehearse {

namespace {

// Recursive doubling: everybody exchanges everything with the partner at distance 1, 2, 4, ... and adds.
Rounds doubling(std::int64_t n, Range whole) {
    const Folding folding{n};
    const auto exchange = [folding, whole](std::int64_t round, const Sink& add) {
        const std::int64_t distance = std::int64_t{1} << round;
        for (std::int64_t p = 0; p < folding.power; ++p) {
            add({folding.rank_of(p), folding.rank_of(p ^ distance), whole.begin, whole.end, Combine::reduce});
        }
    };
    return in_sequence({folding.fold(whole, Combine::reduce), apart(log2_floor(n), exchange), folding.unfold(whole)});
}

// What player p still holds after `steps` halvings: the lower half where its bit is 0, the upper where it is 1.
Range halved(Range range, std::int64_t p, std::int64_t steps) {
    for (std::int64_t k = 0; k < steps; ++k) {
        const std::int64_t middle = range.begin + (range.end - range.begin) / 2;
        if ((p >> k & 1) == 0) {
            range.end = middle;
        } else {
            range.begin = middle;
        }
    }
    return range;
}

// Recursive halving, then doubling (Rabenseifner 2004): halves with the neighbour at distance 1, quarters at 2, ...,
// so that the largest messages travel the shortest way; then back.
Halves halving(std::int64_t n, Range whole) {
    const Folding folding{n};
    const std::int64_t steps = log2_floor(n);
    const auto step = [folding, whole](std::int64_t k, Combine combine, const Sink& add) {
        for (std::int64_t p = 0; p < folding.power; ++p) {
            const std::int64_t partner = p ^ (std::int64_t{1} << k);
            const Range part = halved(whole, combine == Combine::reduce ? partner : p, k + 1);
            add({folding.rank_of(p), folding.rank_of(partner), part.begin, part.end, combine});
        }
    };
    const auto reduce = [step](std::int64_t round, const Sink& add) { step(round, Combine::reduce, add); };
    const auto spread = [step, steps](std::int64_t round, const Sink& add) {
        step(steps - 1 - round, Combine::copy, add);
    };
    const auto owned = [folding, whole, steps](std::int64_t rank) -> Range {
        if (!folding.plays(rank)) return {whole.begin, whole.begin};
        return halved(whole, folding.player_of(rank), steps);
    };
    return {in_sequence({folding.fold(whole, Combine::reduce), apart(steps, reduce)}),
            in_sequence({apart(steps, spread), folding.unfold(whole)}), owned};
}

// Everybody sends each chunk straight to the rank that sums it, which sends the sum to all.
Rounds straight(std::int64_t n, Range whole) {
    const auto to_all = [n, whole](Combine combine, const Sink& add) {
        for (std::int64_t from = 0; from < n; ++from) {
            for (std::int64_t to = 0; to < n; ++to) {
                const Range part = chunk(n, whole, combine == Combine::reduce ? to : from);
                if (from != to) add({from, to, part.begin, part.end, combine});
            }
        }
    };
    return apart(n > 1 ? 2 : 0, [to_all](std::int64_t round, const Sink& add) {
        to_all(round == 0 ? Combine::reduce : Combine::copy, add);
    });
}

Rounds direct(const Task& task) { return straight(task.group.size, task.whole); }

Rounds whole_task(const Task& task) { return flat_all_reduce(task.algorithm.name, task.group, task.whole); }

constexpr CollectiveKind kind = CollectiveKind::all_reduce;

constexpr std::array table{
    Pattern{kind, "ring", "2(n-1) rounds of 1/n of the data with the next rank: least bytes, most rounds", whole_task},
    Pattern{kind, "doubling", "log2 n exchanges of everything: fewest rounds, for small buckets", whole_task},
    Pattern{kind, "halving", "recursive halving then doubling: 2 log2 n rounds, as few bytes as the ring", whole_task},
    Pattern{kind, "tree", "binomial tree to rank 0 and back: 2 log2 n rounds of everything", whole_task},
    Pattern{kind, "hierarchical(A,B)", "A in each node leaves each rank a share, B sums the shares across nodes",
            hierarchical},
    Pattern{kind, "doubletree", "two trees, each for half the data, in pieces: log2 n rounds beyond the pieces",
            double_tree_all_reduce},
    Pattern{kind, "rings", "a ring for each rank of a node, which leaves the node by that rank's network card", rings},
    Pattern{kind, "direct", "two rounds: each chunk straight to who sums it, and to all; in switches that sum", direct},
    Pattern{kind, "adasum", "vectors are combined by how far they agree: 2 log2 n rounds and dot products", adasum},
    Pattern{kind, "nccl", "as NCCL chooses; its rounds, where they are asked for, are those of rings", rings},
    Pattern{kind, "rccl", "as RCCL, AMD's port of NCCL, chooses; its rounds likewise", rings},
    Pattern{kind, "torus", "torus(RxC): half the data by rings along rows then columns, half the other way", torus},
};

}  // namespace

std::optional<Halves> halves_of(std::string_view name, const Group& group, Range whole) {
    const std::int64_t n = group.size;
    if (name == "ring") {
        return Halves{ring_reduce(group, whole), ring_spread(group, whole),
                      [n, whole](std::int64_t rank) { return chunk(n, whole, rank); }};
    }
    if (name == "halving") return halving(n, whole);
    if (name == "tree") {
        return Halves{binomial_reduce(n, whole), binomial_spread(n, whole), [whole](std::int64_t rank) {
                          return rank == 0 ? whole : Range{whole.begin, whole.begin};
                      }};
    }
    return std::nullopt;
}

Rounds flat_all_reduce(std::string_view name, const Group& group, Range whole) {
    if (name == "doubling") return doubling(group.size, whole);
    if (name == "direct") return straight(group.size, whole);
    const std::optional<Halves> halves = halves_of(name, group, whole);
    require(halves.has_value(), "an algorithm that parse_algorithm accepted");
    return in_sequence({halves->reduce, halves->spread});
}

std::span<const Pattern> all_reduce_patterns() { return table; }

}  // namespace rehearse
