// SPDX-License-Identifier: Apache-2.0
// Reduce-scatter and all-gather: rank r ends with the sum of chunk r, or begins with chunk r.
#include <array>

#include "core/collectives/patterns.hpp"

namespace rehearse {

namespace {

// Halving and doubling between players, each of whom has the chunks of its own rank and of the one that it plays for:
// in rank order, so that what a block of players has lies together.
class Blocks {
public:
    explicit Blocks(const Task& task) : folding_(task.group.size), whole_(task.whole) {}
    std::int64_t steps() const { return log2_floor(folding_.power); }
    const Folding& folding() const { return folding_; }

    // Of `count` players, among them `player`; count is a power of two.
    Range block(std::int64_t player, std::int64_t count) const {
        const std::int64_t first = player & ~(count - 1);
        return {start(folding_.first_rank(first)), start(folding_.first_rank(first + count))};
    }

private:
    std::int64_t start(std::int64_t rank) const {
        return whole_.begin + (whole_.end - whole_.begin) * rank / folding_.ranks;
    }
    Folding folding_;
    Range whole_;
};

// Only between a rank and who plays for it: the part of the former.
Rounds give_back(const Task& task) {
    const Folding folding{task.group.size};
    return alike(folding.surplus > 0 ? 1 : 0, [folding, whole = task.whole](std::int64_t, const Sink& add) {
        for (std::int64_t i = 0; i < folding.surplus; ++i) {
            const Range part = chunk(folding.ranks, whole, 2 * i);
            add({2 * i + 1, 2 * i, part.begin, part.end, Combine::copy});
        }
    });
}

Rounds hand_over(const Task& task) {
    const Folding folding{task.group.size};
    return alike(folding.surplus > 0 ? 1 : 0, [folding, whole = task.whole](std::int64_t, const Sink& add) {
        for (std::int64_t i = 0; i < folding.surplus; ++i) {
            const Range part = chunk(folding.ranks, whole, 2 * i);
            add({2 * i, 2 * i + 1, part.begin, part.end, Combine::copy});
        }
    });
}

// Recursive halving: the half that the far partner needs, then a quarter to a nearer one, ...
Rounds halving_reduce_scatter(const Task& task) {
    const Blocks blocks{task};
    const auto halve = [blocks](std::int64_t round, const Sink& add) {
        const Folding& folding = blocks.folding();
        const std::int64_t distance = folding.power >> (round + 1);
        for (std::int64_t p = 0; p < folding.power; ++p) {
            const Range part = blocks.block(p ^ distance, distance);
            add({folding.rank_of(p), folding.rank_of(p ^ distance), part.begin, part.end, Combine::reduce});
        }
    };
    return in_sequence(
        {blocks.folding().fold(task.whole, Combine::reduce), apart(blocks.steps(), halve), give_back(task)});
}

// Recursive doubling: a chunk to the neighbour, two to the next but one, ...
Rounds doubling_all_gather(const Task& task) {
    const Blocks blocks{task};
    const auto exchange = [blocks](std::int64_t round, const Sink& add) {
        const Folding& folding = blocks.folding();
        const std::int64_t distance = std::int64_t{1} << round;
        for (std::int64_t p = 0; p < folding.power; ++p) {
            const Range part = blocks.block(p, distance);
            add({folding.rank_of(p), folding.rank_of(p ^ distance), part.begin, part.end, Combine::copy});
        }
    };
    return in_sequence({hand_over(task), apart(blocks.steps(), exchange), blocks.folding().unfold(task.whole)});
}

// Round k: everybody sends rank r + 1 + k its chunk.
Rounds pairwise_reduce_scatter(const Task& task) {
    return apart(task.group.size - 1, [n = task.group.size, whole = task.whole](std::int64_t round, const Sink& add) {
        for (std::int64_t r = 0; r < n; ++r) {
            const std::int64_t to = (r + 1 + round) % n;
            const Range part = chunk(n, whole, to);
            add({r, to, part.begin, part.end, Combine::reduce});
        }
    });
}

Rounds pairwise_all_gather(const Task& task) {
    return apart(task.group.size - 1, [n = task.group.size, whole = task.whole](std::int64_t round, const Sink& add) {
        for (std::int64_t r = 0; r < n; ++r) {
            const Range part = chunk(n, whole, r);
            add({r, (r + 1 + round) % n, part.begin, part.end, Combine::copy});
        }
    });
}

constexpr CollectiveKind scatter = CollectiveKind::reduce_scatter;
constexpr CollectiveKind gather = CollectiveKind::all_gather;

Rounds scatter_by_rings(const Task& task) { return rings_reduce(task.group, task.whole); }
Rounds gather_by_rings(const Task& task) { return rings_spread(task.group, task.whole); }

constexpr std::array table{
    Pattern{scatter, "ring", "n-1 rounds of 1/n of the data with the next rank",
            [](const Task& t) { return ring_reduce(t.group, t.whole); }},
    Pattern{scatter, "rings", "a ring for each rank of a node, which leaves the node by that rank's network card",
            scatter_by_rings},
    Pattern{scatter, "halving", "log2 n rounds of a half, a quarter, ... of the data", halving_reduce_scatter},
    Pattern{scatter, "pairwise", "n-1 rounds, in each a chunk straight to where it is summed", pairwise_reduce_scatter},
    Pattern{scatter, "nccl", "as NCCL chooses; its rounds are those of rings", scatter_by_rings},
    Pattern{scatter, "rccl", "as RCCL chooses; its rounds likewise", scatter_by_rings},
    Pattern{gather, "ring", "n-1 rounds of 1/n of the data with the next rank",
            [](const Task& t) { return ring_spread(t.group, t.whole); }},
    Pattern{gather, "rings", "a ring for each rank of a node, which leaves the node by that rank's network card",
            gather_by_rings},
    Pattern{gather, "doubling", "log2 n rounds of 1/n, 2/n, ... of the data", doubling_all_gather},
    Pattern{gather, "pairwise", "n-1 rounds, in each a rank's own chunk straight to another", pairwise_all_gather},
    Pattern{gather, "nccl", "as NCCL chooses; its rounds are those of rings", gather_by_rings},
    Pattern{gather, "rccl", "as RCCL chooses; its rounds likewise", gather_by_rings},
};

}  // namespace

std::span<const Pattern> half_patterns() { return table; }

}  // namespace rehearse
