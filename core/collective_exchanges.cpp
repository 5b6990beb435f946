// SPDX-License-Identifier: Apache-2.0
// All-to-all: chunk d of every rank's data goes to rank d, whose slot s receives it from rank s.
#include <algorithm>
#include <array>

#include "core/collective_patterns.hpp"

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

constexpr std::array table{
    Pattern{CollectiveKind::all_to_all, "pairwise", "n-1 rounds, in each a block straight to another rank", pairwise},
    Pattern{CollectiveKind::all_to_all, "bruck", "log2 n rounds of half the data: for small blocks", bruck},
};

}  // namespace

std::span<const Pattern> all_to_all_patterns() { return table; }

}  // namespace rehearse
