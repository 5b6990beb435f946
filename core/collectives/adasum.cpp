// SPDX-License-Identifier: Apache-2.0
// Adasum (Maleki et al. 2021): vectors a and b become (1 - a.b / 2|a|^2) a + (1 - a.b / 2|b|^2) b, pair by pair. Four
// players, what each holds of which sum after a level:
//   level 0   0-1, 2-3 exchange halves: 0 has the first half of 0+1, 1 the second; dot products over {0 1}, {2 3}
//   level 1   0-2, 1-3 exchange quarters of these: 0 has the first quarter of (0+1)+(2+3), ...; over {0 1 2 3}
//   back      quarters, then halves, as in recursive doubling
// A half that comes in is put beside the own one; the dot products of what a rank has of both are summed over all ranks
// that share the two vectors, by recursive doubling, before the halves become one.
#include "core/collectives/patterns.hpp"

namespace rehearse {

namespace {

class Adasum {
public:
    Adasum(std::int64_t n, Range whole) : folding_(n), whole_(whole), products_(whole.end + beside(n, whole)) {}

    // Where there is a surplus, whole vectors come in; else halves at most.
    static std::int64_t beside(std::int64_t n, Range whole) {
        const std::int64_t size = whole.end - whole.begin;
        return Folding{n}.surplus > 0 ? size : size - size / 2;
    }

    Rounds rounds() const {
        std::vector<Rounds> parts;
        if (folding_.surplus > 0) parts.push_back(fold());
        for (std::int64_t level = 0; level < levels(); ++level) {
            parts.push_back(exchange(level));
            parts.push_back(local(level, Combine::dots));
            parts.push_back(sum_products(level));
            parts.push_back(local(level, Combine::blend));
        }
        parts.push_back(apart(levels(), [*this](std::int64_t round, const Sink& add) {
            const std::int64_t level = levels() - 1 - round;
            for (std::int64_t p = 0; p < folding_.power; ++p) {
                const Range part = held(p, level + 1);
                add({rank(p), rank(p ^ distance(level)), part.begin, part.end, Combine::copy});
            }
        }));
        parts.push_back(folding_.unfold(whole_));
        return in_sequence(std::move(parts));
    }

private:
    std::int64_t levels() const { return log2_floor(folding_.power); }
    static std::int64_t distance(std::int64_t level) { return std::int64_t{1} << level; }
    std::int64_t rank(std::int64_t player) const { return folding_.rank_of(player); }

    // Of a player after so many levels: the lower half where its bit is 0, the upper where it is 1.
    Range held(std::int64_t player, std::int64_t after) const {
        Range range = whole_;
        for (std::int64_t level = 0; level < after; ++level) {
            const std::int64_t middle = range.begin + (range.end - range.begin) / 2;
            ((player >> level & 1) == 0 ? range.end : range.begin) = middle;
        }
        return range;
    }

    // From what a player holds to what lies beside it.
    std::int64_t shift(std::int64_t player) const {
        return whole_.end - (folding_.surplus > 0 ? whole_.begin : held(player, 1).begin);
    }

    Rounds fold() const {
        const std::int64_t aside = whole_.end - whole_.begin;
        return apart(3, [*this, aside](std::int64_t round, const Sink& add) {
            for (std::int64_t i = 0; i < folding_.surplus; ++i) {
                const std::int64_t plays = 2 * i + 1;
                if (round == 0) {
                    add({2 * i, plays, whole_.begin, whole_.end, Combine::beside, aside});
                } else {
                    const Combine what = round == 1 ? Combine::dots : Combine::blend;
                    add({plays, plays, whole_.begin, whole_.end, what, aside});
                }
            }
        });
    }

    Rounds exchange(std::int64_t level) const {
        return apart(1, [*this, level](std::int64_t, const Sink& add) {
            for (std::int64_t p = 0; p < folding_.power; ++p) {
                const std::int64_t partner = p ^ distance(level);
                const Range part = held(partner, level + 1);
                add({rank(p), rank(partner), part.begin, part.end, Combine::beside, shift(partner)});
            }
        });
    }

    // The first vector is that of the players whose bit is 0, on whichever rank.
    Rounds local(std::int64_t level, Combine what) const {
        return apart(1, [*this, level, what](std::int64_t, const Sink& add) {
            for (std::int64_t p = 0; p < folding_.power; ++p) {
                const Range part = held(p, level + 1);
                const std::int64_t aside = shift(p);
                if ((p & distance(level)) == 0) {
                    add({rank(p), rank(p), part.begin, part.end, what, aside});
                } else {
                    add({rank(p), rank(p), part.begin + aside, part.end + aside, what, -aside});
                }
            }
        });
    }

    Rounds sum_products(std::int64_t level) const {
        return apart(level + 1, [*this](std::int64_t round, const Sink& add) {
            for (std::int64_t p = 0; p < folding_.power; ++p) {
                const std::int64_t partner = p ^ distance(round);
                add({rank(p), rank(partner), products_, products_ + adasum_products, Combine::reduce});
            }
        });
    }

    Folding folding_;
    Range whole_;
    std::int64_t products_;  // where they lie
};

}  // namespace

Rounds adasum(const Task& task) { return Adasum{task.group.size, task.whole}.rounds(); }

std::int64_t adasum_room(std::int64_t n, std::int64_t elements) {
    return Adasum::beside(n, {0, elements}) + adasum_products;
}

}  // namespace rehearse
