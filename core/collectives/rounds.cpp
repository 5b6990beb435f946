// SPDX-License-Identifier: Apache-2.0
#include "core/collectives/rounds.hpp"

#include <algorithm>
#include <bit>
#include <set>
#include <utility>

namespace rehearse {

Rounds alike(std::int64_t count, std::function<void(std::int64_t, const Sink&)> transfers) {
    Rounds rounds{{}, std::move(transfers)};
    if (count > 0) rounds.phases.push_back({0, count});
    return rounds;
}

Rounds apart(std::int64_t count, std::function<void(std::int64_t, const Sink&)> transfers) {
    Rounds rounds{{}, std::move(transfers)};
    for (std::int64_t i = 0; i < count; ++i) rounds.phases.push_back({i, 1});
    return rounds;
}

Rounds in_sequence(std::vector<Rounds> parts) {
    Rounds whole;
    std::int64_t first = 0;
    for (const Rounds& part : parts) {
        for (const Phase& phase : part.phases) whole.phases.push_back({first + phase.first_round, phase.repeats});
        first += part.count();
    }
    whole.transfers = [parts = std::move(parts)](std::int64_t round, const Sink& add) {
        for (const Rounds& part : parts) {
            if (round < part.count()) return part.transfers(round, add);
            round -= part.count();
        }
    };
    return whole;
}

Rounds side_by_side(std::vector<Rounds> parts) {
    std::set<std::int64_t> begins;
    std::int64_t count = 0;
    for (const Rounds& part : parts) {
        for (const Phase& phase : part.phases) begins.insert(phase.first_round);
        begins.insert(part.count());
        count = std::max(count, part.count());
    }
    Rounds whole;
    for (auto begin = begins.begin(); begin != begins.end() && *begin < count; ++begin) {
        whole.phases.push_back({*begin, *std::next(begin) - *begin});
    }
    whole.transfers = [parts = std::move(parts)](std::int64_t round, const Sink& add) {
        for (const Rounds& part : parts) {
            if (round < part.count()) part.transfers(round, add);
        }
    };
    return whole;
}

Rounds joined(Rounds one) {
    Rounds sorted{one.phases, {}};
    sorted.transfers = [one = std::move(one)](std::int64_t round, const Sink& add) {
        std::vector<Transfer> transfers;
        one.transfers(round, [&](const Transfer& t) { transfers.push_back(t); });
        std::ranges::stable_sort(transfers, [](const Transfer& a, const Transfer& b) {
            return std::pair{a.from, a.to} < std::pair{b.from, b.to};
        });
        for (const Transfer& t : transfers) add(t);
    };
    return sorted;
}

Rounds copies(Rounds one, std::int64_t count, std::function<std::int64_t(std::int64_t, std::int64_t)> rank_of) {
    Rounds all{one.phases, {}};
    all.transfers = [one = std::move(one), count, rank_of = std::move(rank_of)](std::int64_t round, const Sink& add) {
        std::vector<Transfer> transfers;
        one.transfers(round, [&](const Transfer& t) {
            if (t.begin < t.end) transfers.push_back(t);
        });
        for (std::int64_t copy = 0; copy < count; ++copy) {
            for (Transfer t : transfers) {
                t.from = rank_of(copy, t.from);
                t.to = rank_of(copy, t.to);
                add(t);
            }
        }
    };
    return all;
}

Rounds renamed(Rounds one, RankMap rank_of) {
    Rounds other{one.phases, {}};
    other.transfers = [one = std::move(one), rank_of = std::move(rank_of)](std::int64_t round, const Sink& add) {
        one.transfers(round, [&](Transfer t) {
            t.from = rank_of(t.from);
            t.to = rank_of(t.to);
            add(t);
        });
    };
    return other;
}

Range chunk(std::int64_t n, Range whole, std::int64_t index) {
    const std::int64_t size = whole.end - whole.begin;
    index = (index % n + n) % n;
    return {whole.begin + size * index / n, whole.begin + size * (index + 1) / n};
}

std::int64_t log2_floor(std::int64_t n) { return std::bit_width(static_cast<std::uint64_t>(n)) - 1; }
std::int64_t log2_ceil(std::int64_t n) { return n <= 1 ? 0 : log2_floor(n - 1) + 1; }

Rounds Folding::fold(Range whole, Combine combine) const {
    return alike(surplus > 0 ? 1 : 0, [pairs = surplus, whole, combine](std::int64_t, const Sink& add) {
        for (std::int64_t i = 0; i < pairs; ++i) add({2 * i, 2 * i + 1, whole.begin, whole.end, combine});
    });
}

Rounds Folding::unfold(Range whole) const {
    return alike(surplus > 0 ? 1 : 0, [pairs = surplus, whole](std::int64_t, const Sink& add) {
        for (std::int64_t i = 0; i < pairs; ++i) add({2 * i + 1, 2 * i, whole.begin, whole.end, Combine::copy});
    });
}

}  // namespace rehearse
