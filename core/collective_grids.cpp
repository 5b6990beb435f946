// SPDX-License-Identifier: Apache-2.0
// All-reduces over ranks in rows and columns: nodes and their devices, or a 2-D torus.
#include "core/collective_patterns.hpp"
#include "core/error.hpp"

namespace rehearse {

namespace {

using RankAt = std::function<std::int64_t(std::int64_t inside, std::int64_t across)>;

// Reduce inside each of `lines` lines of `length` ranks, all-reduce each rank's share across the lines, spread inside.
Rounds two_level(std::string_view inside, std::string_view across, std::int64_t length, std::int64_t lines, Range whole,
                 const RankAt& rank_at) {
    const std::optional<Halves> halves = halves_of(inside, length, whole);
    require(halves.has_value(), "an algorithm that parse_algorithm accepted");
    std::vector<Rounds> shares;
    for (std::int64_t i = 0; i < length; ++i) {
        const Range share = halves->owned(i);
        if (i > 0 && share.begin == share.end) continue;
        shares.push_back(renamed(flat_all_reduce(across, lines, share),
                                 [i, rank_at](std::int64_t line) { return rank_at(i, line); }));
    }
    const auto on_line = [rank_at](std::int64_t line, std::int64_t i) { return rank_at(i, line); };
    return in_sequence({copies(halves->reduce, lines, on_line), side_by_side(std::move(shares)),
                        copies(halves->spread, lines, on_line)});
}

}  // namespace

Rounds hierarchical(const Task& task) {
    const std::int64_t local = task.group.per_node;
    return two_level(task.algorithm.inside, task.algorithm.across, local, task.group.size / local, task.whole,
                     [local](std::int64_t inside, std::int64_t node) { return node * local + inside; });
}

// As many rings through all ranks as a node has, each for its part of the data, so that every network card of a node is
// in one (as NCCL lays its channels). Ring c comes to a node at its rank c, zigzags through the others, and leaves at c
// + per_node / 2: of an even number, each rank of a node sends to each other one in one of the rings (Williams 1949).
//   four a node   ring 0: 0 1 3 2   ring 1: 1 2 0 3   ring 2: 2 3 1 0   ring 3: 3 0 2 1
Rounds rings(const Task& task) {
    const std::int64_t local = task.group.per_node, n = task.group.size;
    if (local == 1 || n % local != 0 || n == local) return flat_all_reduce("ring", n, task.whole);
    std::vector<Rounds> parts;
    for (std::int64_t c = 0; c < local; ++c) {
        const auto at = [c, local](std::int64_t place) {
            const std::int64_t step = place % local;
            const std::int64_t zigzag = step % 2 == 1 ? (step + 1) / 2 : local - step / 2;
            return place - step + (c + zigzag) % local;
        };
        parts.push_back(renamed(flat_all_reduce("ring", n, chunk(local, task.whole, c)), at));
    }
    return joined(side_by_side(std::move(parts)));
}

// Half the data along rows first, half along columns first, so that the links of both are busy all the time (as on
// TPUs: Kumar and Jouppi 2020; Mikami et al. 2018 do one half only). Both halves reduce for R + C - 2 rounds.
Rounds torus(const Task& task) {
    const auto [rows, columns] = torus_sides(task.algorithm, task.group.size);
    if (rows == 1 || columns == 1) return flat_all_reduce("ring", task.group.size, task.whole);
    const auto along_rows = [columns = columns](std::int64_t column, std::int64_t row) {
        return row * columns + column;
    };
    const auto along_columns = [columns = columns](std::int64_t row, std::int64_t column) {
        return row * columns + column;
    };
    return joined(side_by_side({two_level("ring", "ring", columns, rows, chunk(2, task.whole, 0), along_rows),
                                two_level("ring", "ring", rows, columns, chunk(2, task.whole, 1), along_columns)}));
}

}  // namespace rehearse
