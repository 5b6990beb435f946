// SPDX-License-Identifier: Apache-2.0
#include "core/collective_patterns.hpp"

#include <array>
#include <bit>

namespace rehearse {

namespace {

std::int64_t log2_floor(std::int64_t n) { return std::bit_width(static_cast<std::uint64_t>(n)) - 1; }
std::int64_t log2_ceil(std::int64_t n) { return n <= 1 ? 0 : log2_floor(n - 1) + 1; }

Range chunk(std::int64_t n, Range whole, std::int64_t index) {
    const std::int64_t size = whole.end - whole.begin;
    index = (index % n + n) % n;
    return {whole.begin + size * index / n, whole.begin + size * (index + 1) / n};
}

// Ring (Patarasu and Yuan 2009). Four ranks, which chunk each sends in each round, reduce | spread:
//   rank 0: 0 3 2 | 1 0 3     rank r passes chunk r - k on to r + 1, which adds its own part; after n - 1 rounds rank r
//   rank 1: 1 0 3 | 2 1 0     owns the sum of chunk r + 1, and the same chain carries the sums around.
std::int64_t ring_rounds(std::int64_t n) { return 2 * (n - 1); }
std::int64_t ring_reduce_rounds(std::int64_t n) { return n - 1; }
void ring(std::int64_t n, Range whole, std::int64_t round, const Sink& add) {
    const bool reduce = round < n - 1;
    const std::int64_t k = reduce ? round : round - n;  // the spread starts one chunk further
    for (std::int64_t r = 0; r < n; ++r) {
        const Range part = chunk(n, whole, r - k);
        add({r, (r + 1) % n, part.begin, part.end, reduce ? Combine::reduce : Combine::copy});
    }
}
Range ring_owned(std::int64_t n, Range whole, std::int64_t rank) { return chunk(n, whole, rank + 1); }

// Ranks beyond a power of two hand their data to a neighbour first and get the result back last (Thakur et al. 2005).
// The first 2 * surplus ranks are pairs (even gives, odd plays); players are renumbered 0 .. power - 1.
struct Folding {
    explicit Folding(std::int64_t n) : power(std::int64_t{1} << log2_floor(n)), surplus(n - power) {}
    std::int64_t rank_of(std::int64_t player) const { return player < surplus ? 2 * player + 1 : player + surplus; }
    void fold(Range whole, const Sink& add) const {
        for (std::int64_t i = 0; i < surplus; ++i) add({2 * i, 2 * i + 1, whole.begin, whole.end, Combine::reduce});
    }
    void unfold(Range whole, const Sink& add) const {
        for (std::int64_t i = 0; i < surplus; ++i) add({2 * i + 1, 2 * i, whole.begin, whole.end, Combine::copy});
    }
    std::int64_t power, surplus;
};

// Recursive doubling: everybody exchanges everything with the partner at distance 1, 2, 4, ... and adds.
std::int64_t doubling_rounds(std::int64_t n) {
    return log2_floor(n) + (std::has_single_bit(static_cast<std::uint64_t>(n)) ? 0 : 2);
}
void doubling(std::int64_t n, Range whole, std::int64_t round, const Sink& add) {
    const Folding folding{n};
    if (folding.surplus > 0 && round-- == 0) return folding.fold(whole, add);
    if (round == log2_floor(n)) return folding.unfold(whole, add);
    const std::int64_t distance = std::int64_t{1} << round;
    for (std::int64_t p = 0; p < folding.power; ++p) {
        add({folding.rank_of(p), folding.rank_of(p ^ distance), whole.begin, whole.end, Combine::reduce});
    }
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
std::int64_t halving_reduce_rounds(std::int64_t n) {
    return log2_floor(n) + (std::has_single_bit(static_cast<std::uint64_t>(n)) ? 0 : 1);
}
std::int64_t halving_rounds(std::int64_t n) { return 2 * halving_reduce_rounds(n); }
void halving(std::int64_t n, Range whole, std::int64_t round, const Sink& add) {
    const Folding folding{n};
    const std::int64_t steps = log2_floor(n);
    if (folding.surplus > 0) --round;
    if (round < 0) return folding.fold(whole, add);
    if (round == 2 * steps) return folding.unfold(whole, add);
    const bool reduce = round < steps;
    const std::int64_t k = reduce ? round : 2 * steps - 1 - round;
    for (std::int64_t p = 0; p < folding.power; ++p) {
        const std::int64_t partner = p ^ (std::int64_t{1} << k);
        const Range part = halved(whole, reduce ? partner : p, k + 1);
        add({folding.rank_of(p), folding.rank_of(partner), part.begin, part.end,
             reduce ? Combine::reduce : Combine::copy});
    }
}
Range halving_owned(std::int64_t n, Range whole, std::int64_t rank) {
    const Folding folding{n};
    if (rank < 2 * folding.surplus && rank % 2 == 0) return {whole.begin, whole.begin};
    const std::int64_t player = rank < 2 * folding.surplus ? rank / 2 : rank - folding.surplus;
    return halved(whole, player, log2_floor(n));
}

// Binomial tree: ranks at odd multiples of 1, 2, 4, ... send all they have to the multiple below; then back down.
//   0 <- 1   2 <- 3   4 <- 5   6 <- 7
//   0 <----- 2        4 <----- 6
//   0 <---------------4
std::int64_t tree_reduce_rounds(std::int64_t n) { return log2_ceil(n); }
std::int64_t tree_rounds(std::int64_t n) { return 2 * log2_ceil(n); }
void tree(std::int64_t n, Range whole, std::int64_t round, const Sink& add) {
    const std::int64_t steps = log2_ceil(n);
    const bool reduce = round < steps;
    const std::int64_t distance = std::int64_t{1} << (reduce ? round : 2 * steps - 1 - round);
    for (std::int64_t child = distance; child < n; child += 2 * distance) {
        const std::int64_t parent = child - distance;
        if (reduce) {
            add({child, parent, whole.begin, whole.end, Combine::reduce});
        } else {
            add({parent, child, whole.begin, whole.end, Combine::copy});
        }
    }
}
Range tree_owned(std::int64_t, Range whole, std::int64_t rank) {
    return rank == 0 ? whole : Range{whole.begin, whole.begin};
}

constexpr std::array table{
    Pattern{"ring", "2(n-1) rounds of 1/n of the data with the next rank: least bytes, most rounds", ring_rounds,
            ring_reduce_rounds, ring, ring_owned, true},
    Pattern{"doubling", "log2 n exchanges of everything: fewest rounds, for small buckets", doubling_rounds, nullptr,
            doubling, nullptr, false},
    Pattern{"halving", "recursive halving then doubling: 2 log2 n rounds, as few bytes as the ring", halving_rounds,
            halving_reduce_rounds, halving, halving_owned, false},
    Pattern{"tree", "binomial tree to rank 0 and back: 2 log2 n rounds of everything", tree_rounds, tree_reduce_rounds,
            tree, tree_owned, false},
};

}  // namespace

std::span<const Pattern> flat_patterns() { return table; }

}  // namespace rehearse
