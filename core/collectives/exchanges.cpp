// SPDX-License-Identifier: Apache-2.0
// Rows for neighbours, and
// All-to-all: chunk d of every rank's data goes to rank d, whose slot s receives it from rank s.
#include <algorithm>
#include <array>

#include "core/collectives/patterns.hpp"

namespace rehearse {

namespace {

class Slots {
public:
    explicit Slots(const Task& task) : n_(task.group.size), whole_(task.whole), slot_(task.slot) {}
    std::int64_t ranks() const { return n_; }
    Range input(std::int64_t to) const { return chunk(n_, whole_, to); }
    // `length` elements in the slot for a rank's block.
    Range output(std::int64_t of, std::int64_t length) const {
        const std::int64_t begin = whole_.end + (of % n_ + n_) % n_ * slot_;
        return {begin, begin + length};
    }
    void keep_own(const Sink& add) const {
        for (std::int64_t r = 0; r < n_; ++r) move(r, r, input(r), output(r, length(input(r))), add);
    }
    static void move(std::int64_t from, std::int64_t to, Range source, Range target, const Sink& add) {
        add({from, to, source.begin, source.end, Combine::copy, target.begin - source.begin});
    }
    static std::int64_t length(Range range) { return range.end - range.begin; }

private:
    std::int64_t n_;
    Range whole_;
    std::int64_t slot_;
};

// Round k: everybody sends rank r + 1 + k what it is to have. A rank's own chunk moves in the first round.
Rounds pairwise(const Task& task) {
    const std::int64_t n = task.group.size;
    return apart(std::max<std::int64_t>(n - 1, 1), [slots = Slots{task}, n](std::int64_t round, const Sink& add) {
        if (round == 0) slots.keep_own(add);
        for (std::int64_t r = 0; r < n && n > 1; ++r) {
            const std::int64_t to = (r + 1 + round) % n;
            const Range part = slots.input(to);
            Slots::move(r, to, part, slots.output(r, Slots::length(part)), add);
        }
    });
}

// The same, all blocks under way together.
Rounds grouped(const Task& task) {
    const std::int64_t n = task.group.size;
    return apart(1, [slots = Slots{task}, n](std::int64_t /*round*/, const Sink& add) {
        slots.keep_own(add);
        for (std::int64_t distance = 1; distance < n; ++distance) {
            for (std::int64_t r = 0; r < n; ++r) {
                const std::int64_t to = (r + distance) % n;
                const Range part = slots.input(to);
                Slots::move(r, to, part, slots.output(r, Slots::length(part)), add);
            }
        }
    });
}

// Pairs meet as in a tournament in which one place stays and the others go around (an odd rank out waits). In rounds 2k
// and 2k + 1 one of each pair sends, then the other: of every other pair the lower rank first, so that links between
// groups of ranks are used both ways.
Rounds turns(const Task& task) {
    const std::int64_t n = task.group.size, around = n + n % 2 - 1;  // places that go around
    return apart(std::max<std::int64_t>(n > 1 ? 2 * around : 0, 1),
                 [slots = Slots{task}, n, around](std::int64_t round, const Sink& add) {
                     if (round == 0) slots.keep_own(add);
                     const std::int64_t place = round / 2;
                     for (std::int64_t i = 0; i <= (around - 1) / 2 && n > 1; ++i) {
                         const std::int64_t one = i == 0 ? around : (place + around - i) % around;
                         const std::int64_t two = (place + i) % around, low = std::min(one, two);
                         if (std::max(one, two) >= n) continue;
                         const std::int64_t from = (round + i) % 2 == 0 ? low : one + two - low, to = one + two - from;
                         const Range part = slots.input(to);
                         Slots::move(from, to, part, slots.output(from, Slots::length(part)), add);
                     }
                 });
}

// Bruck et al. (1997), without their rotations of the data: a block that has i ranks to go travels 2^k of them in round
// k where bit k of i is set. Before its first hop it lies among its sender's data; afterwards, at rank r, in slot r -
// i, which at its goal is the slot of the rank that it comes from. Blocks with other i never meet there.
Rounds bruck(const Task& task) {
    const std::int64_t n = task.group.size;
    return apart(std::max<std::int64_t>(log2_ceil(n), 1), [slots = Slots{task}, n](std::int64_t k, const Sink& add) {
        if (k == 0) slots.keep_own(add);
        const std::int64_t hop = std::int64_t{1} << k;
        for (std::int64_t r = 0; r < n; ++r) {
            for (std::int64_t i = hop; i < n; ++i) {
                if ((i & hop) == 0) continue;
                const std::int64_t come = i & (hop - 1);  // so far
                const Range part = slots.input(r - come + i);
                const std::int64_t length = Slots::length(part);
                const Range source = come == 0 ? part : slots.output(r - i, length);
                Slots::move(r, (r + hop) % n, source, slots.output(r + hop - i, length), add);
            }
        }
    });
}

// Round d: with the ranks d before and d after it, which is one round where no rank needs rows from further away.
Rounds halo_rounds(const Task& task,
                   void (*transfer)(const Halo&, std::int64_t has, std::int64_t needs, std::int64_t row, const Sink&)) {
    const std::int64_t n = task.group.size;
    const Halo halo = task.algorithm.halo;
    const bool lends = task.algorithm.name == "lend";
    const std::int64_t rows = lends ? halo.own + halo.size : halo.size + 2 * halo.own;
    const std::int64_t row = rows == 0 ? 0 : (task.whole.end - task.whole.begin) / rows;
    std::int64_t furthest = 0;
    for (std::int64_t has = 0; has < n; ++has) {
        for (std::int64_t needs = 0; needs < n; ++needs) {
            const bool lent = halo.lent_begin(has, needs) < halo.lent_end(has, needs);
            if (lent) furthest = std::max(furthest, std::max(has, needs) - std::min(has, needs));
        }
    }
    return apart(furthest, [=](std::int64_t round, const Sink& add) {
        const std::int64_t distance = round + 1;
        for (std::int64_t rank = 0; rank < n; ++rank) {
            if (rank >= distance) transfer(halo, rank, rank - distance, row, add);
            if (rank + distance < n) transfer(halo, rank, rank + distance, row, add);
        }
    });
}

Rounds lend(const Task& task) {
    return halo_rounds(
        task, [](const Halo& h, std::int64_t has, std::int64_t needs, std::int64_t row, const Sink& add) {
            const std::int64_t begin = h.lent_begin(has, needs);
            const std::int64_t place = h.own + has * h.own + begin - h.first(needs);  // behind the other's own rows
            add({has, needs, begin * row, h.lent_end(has, needs) * row, Combine::copy, (place - begin) * row});
        });
}

Rounds give_back(const Task& task) {
    return halo_rounds(task,
                       [](const Halo& h, std::int64_t has, std::int64_t needs, std::int64_t row, const Sink& add) {
                           const std::int64_t begin = h.lent_begin(has, needs), count = h.lent_end(has, needs) - begin;
                           const std::int64_t from = has * h.own + begin - h.first(needs);
                           const std::int64_t to = h.size + (needs < has ? 0 : h.own) + begin;
                           add({needs, has, from * row, (from + count) * row, Combine::reduce, (to - from) * row});
                       });
}

// Each rank's block of two to the next rank, around the ring, into the place of the other block.
Rounds shift(const Task& task) {
    const std::int64_t n = task.group.size, block = (task.whole.end - task.whole.begin) / 2;
    const bool second = task.algorithm.name != "shift";
    return apart(n > 1 ? 1 : 0, [=](std::int64_t /*round*/, const Sink& add) {
        const std::int64_t begin = second ? block : 0;
        for (std::int64_t r = 0; r < n; ++r) {
            add({r, (r + 1) % n, begin, begin + block, Combine::copy, second ? -block : block});
        }
    });
}

constexpr std::array halo_table{
    Pattern{CollectiveKind::halo, "lend", "each rank's rows to the neighbours that need them", lend},
    Pattern{CollectiveKind::halo, "return", "the rows that were lent back to their ranks, which add them", give_back},
    Pattern{CollectiveKind::halo, "shift", "each rank's first block to the next one's second, around the ring", shift},
    Pattern{CollectiveKind::halo, "shift-second", "each rank's second block to the next one's first", shift},
};

constexpr std::array table{
    Pattern{CollectiveKind::all_to_all, "pairwise", "n-1 rounds, in each a block straight to another rank", pairwise},
    Pattern{CollectiveKind::all_to_all, "turns", "2(n-1) rounds: two ranks exchange blocks, one after the other",
            turns},
    Pattern{CollectiveKind::all_to_all, "grouped", "one round: each block straight to its rank", grouped},
    Pattern{CollectiveKind::all_to_all, "bruck", "log2 n rounds of half the data: for small blocks", bruck},
};

}  // namespace

std::span<const Pattern> all_to_all_patterns() { return table; }
std::span<const Pattern> halo_patterns() { return halo_table; }

}  // namespace rehearse
