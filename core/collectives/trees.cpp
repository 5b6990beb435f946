// SPDX-License-Identifier: Apache-2.0
// Trees: binomial, double binary; and the broadcasts.
#include <algorithm>
#include <array>
#include <bit>

#include "core/collectives/patterns.hpp"

namespace rehearse {

namespace {

// One level of the tree, `distance` between child and parent:
//   0 <- 1   2 <- 3   4 <- 5   6 <- 7
//   0 <----- 2        4 <----- 6
//   0 <---------------4
void level(std::int64_t n, Range whole, std::int64_t distance, Combine combine, const Sink& add) {
    for (std::int64_t child = distance; child < n; child += 2 * distance) {
        const std::int64_t parent = child - distance;
        const bool up = combine == Combine::reduce;
        add({up ? child : parent, up ? parent : child, whole.begin, whole.end, combine});
    }
}

// Sanders, Speck and Träff (2009): two binary trees over all ranks, each for half of the data, such that a rank has
// children in one of them at most, and so never passes on more than all of the data. Nodes 1 .. n in in-order; the
// height of a node is the number of its trailing zeros, so that odd ones are leaves. The second tree is the first one
// mirrored (n even) or turned by one (n odd): odd becomes even.
//         4                    rank:  0 1 2 3 4 5
//     2       6     6 ranks    first  1 2 3 4 5 6
//   1   3   5                  second 6 5 4 3 2 1
class DoubleTree {
public:
    DoubleTree(std::int64_t n, const Task& task)
        : n_(n),
          half_{chunk(2, task.whole, 0), chunk(2, task.whole, 1)},
          pieces_(pipeline_pieces(task.algorithm, task.whole.end - task.whole.begin)) {}
    std::int64_t height() const { return log2_floor(n_); }
    /// Of a pipeline of so many stages.
    std::int64_t rounds(std::int64_t stages) const { return stages == 0 ? 0 : pieces_ + stages - 1; }

    // The deepest nodes send a piece in round 0, their parents in round 1, ... as the next piece follows.
    void up(std::int64_t round, const Sink& add) const {
        edges([&](std::int64_t child, std::int64_t parent, std::int64_t depth, int tree) {
            send(child, parent, round - (height() - depth), tree, Combine::reduce, add);
        });
    }
    void down(std::int64_t round, const Sink& add) const {
        edges([&](std::int64_t child, std::int64_t parent, std::int64_t depth, int tree) {
            send(parent, child, round - (depth - 1), tree, Combine::copy, add);
        });
    }
    // From a rank outside to the tops of both.
    void feed(std::int64_t outside, std::int64_t round, const Sink& add) const {
        const std::int64_t top = std::int64_t{1} << height();
        for (int tree = 0; tree < 2; ++tree) send(outside, rank_of(top, tree), round, tree, Combine::copy, add);
    }

private:
    void send(std::int64_t from, std::int64_t to, std::int64_t piece, int tree, Combine combine,
              const Sink& add) const {
        if (piece < 0 || piece >= pieces_) return;
        const Range part = chunk(pieces_, half_.at(static_cast<std::size_t>(tree)), piece);
        add({from, to, part.begin, part.end, combine});
    }
    std::int64_t rank_of(std::int64_t node, int tree) const {
        if (tree == 0) return node - 1;
        return n_ % 2 == 0 ? n_ - node : (node + n_ - 2) % n_;
    }
    std::int64_t parent(std::int64_t node) const {  // 0: none
        const std::int64_t bit = node & -node;
        const std::int64_t above = (node ^ bit) | (bit << 1);
        return above <= n_ ? above : node ^ bit;
    }
    template <typename Use>
    void edges(const Use& use) const {
        for (std::int64_t node = 1; node <= n_; ++node) {
            std::int64_t depth = 0;
            for (std::int64_t above = parent(node); above != 0; above = parent(above)) ++depth;
            if (depth == 0) continue;
            for (int tree = 0; tree < 2; ++tree) use(rank_of(node, tree), rank_of(parent(node), tree), depth, tree);
        }
    }

    std::int64_t n_;
    std::array<Range, 2> half_;
    std::int64_t pieces_;
};

// Binomial tree from the root.
Rounds tree_broadcast(const Task& task) {
    const std::int64_t n = task.group.size;
    return renamed(binomial_spread(n, task.whole), [n, root = task.root](std::int64_t r) { return (r + root) % n; });
}

// Van de Geijn's: a binomial tree hands each rank its chunk, a ring carries the chunks around.
Rounds scatter_broadcast(const Task& task) {
    const std::int64_t n = task.group.size;
    const std::int64_t steps = log2_ceil(n);
    const auto scatter = [n, steps, whole = task.whole](std::int64_t round, const Sink& add) {
        const std::int64_t distance = std::int64_t{1} << (steps - 1 - round);
        for (std::int64_t to = distance; to < n; to += 2 * distance) {
            const std::int64_t last = std::min(to + distance, n) - 1;
            add({to - distance, to, chunk(n, whole, to).begin, chunk(n, whole, last).end, Combine::copy});
        }
    };
    return renamed(in_sequence({apart(steps, scatter), ring_spread({n, n}, task.whole)}),
                   [n, root = task.root](std::int64_t r) { return (r + root) % n; });
}

// Piece after piece from the root to the next rank, and from there to the next.
Rounds chain_broadcast(const Task& task) {
    const std::int64_t n = task.group.size;
    const std::int64_t pieces = pipeline_pieces(task.algorithm, task.whole.end - task.whole.begin);
    return pipeline(n == 1 ? 0 : pieces + n - 2, n - 1, [=](std::int64_t round, const Sink& add) {
        for (std::int64_t i = std::max<std::int64_t>(0, round - pieces + 1); i < n - 1 && i <= round; ++i) {
            const Range part = chunk(pieces, task.whole, round - i);
            add({(i + task.root) % n, (i + 1 + task.root) % n, part.begin, part.end, Combine::copy});
        }
    });
}

constexpr std::array table{
    Pattern{CollectiveKind::broadcast, "tree", "binomial tree: log2 n rounds of everything", tree_broadcast},
    Pattern{CollectiveKind::broadcast, "scatter", "a chunk to each rank, then a ring: for large data and many ranks",
            scatter_broadcast},
    Pattern{CollectiveKind::broadcast, "chain", "in pieces from rank to rank: n-2 rounds beyond the pieces",
            chain_broadcast},
    Pattern{CollectiveKind::broadcast, "doubletree", "two trees, each for half the data, in pieces",
            double_tree_broadcast},
};

}  // namespace

std::int64_t pipeline_pieces(const Algorithm& algorithm, std::int64_t elements) {
    const bool in_halves = algorithm.name == "doubletree";
    if (!in_halves && algorithm.name != "chain") return 1;
    return std::clamp<std::int64_t>(elements >> (in_halves ? 16 : 15), 1, 64);
}

Rounds pipeline(std::int64_t count, std::int64_t stages, std::function<void(std::int64_t, const Sink&)> transfers) {
    Rounds rounds{{}, std::move(transfers)};
    const std::int64_t full = std::max<std::int64_t>(1, count - 2 * (stages - 1));
    const std::int64_t first = (count - full) / 2;
    for (std::int64_t i = 0; i < count; ++i) {
        const bool middle = i == first;
        rounds.phases.push_back({i, middle ? full : 1});
        if (middle) i += full - 1;
    }
    return rounds;
}

Rounds binomial_reduce(std::int64_t n, Range whole) {
    return apart(log2_ceil(n), [n, whole](std::int64_t round, const Sink& add) {
        level(n, whole, std::int64_t{1} << round, Combine::reduce, add);
    });
}

Rounds binomial_spread(std::int64_t n, Range whole) {
    return apart(log2_ceil(n), [n, whole, steps = log2_ceil(n)](std::int64_t round, const Sink& add) {
        level(n, whole, std::int64_t{1} << (steps - 1 - round), Combine::copy, add);
    });
}

Rounds double_tree_all_reduce(const Task& task) {
    const DoubleTree trees{task.group.size, task};
    const std::int64_t stages = trees.height();
    const auto up = [trees](std::int64_t round, const Sink& add) { trees.up(round, add); };
    const auto down = [trees](std::int64_t round, const Sink& add) { trees.down(round, add); };
    return in_sequence({pipeline(trees.rounds(stages), stages, up), pipeline(trees.rounds(stages), stages, down)});
}

// The trees span all ranks but the root, which feeds both.
Rounds double_tree_broadcast(const Task& task) {
    const std::int64_t n = task.group.size;
    if (n == 1) return {};
    const DoubleTree trees{n - 1, task};
    const std::int64_t stages = trees.height() + 1;
    const auto step = [trees](std::int64_t round, const Sink& add) {
        trees.feed(-1, round, add);
        trees.down(round - 1, add);
    };
    return renamed(pipeline(trees.rounds(stages), stages, step),
                   [n, root = task.root](std::int64_t r) { return (root + 1 + r) % n; });
}

std::span<const Pattern> broadcast_patterns() { return table; }

}  // namespace rehearse
