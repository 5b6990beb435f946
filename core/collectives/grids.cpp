// SPDX-License-Identifier: Apache-2.0
// All-reduces over ranks in rows and columns: nodes and their devices, or a 2-D torus.
#include "core/collectives/patterns.hpp"
#include "core/error.hpp"

namespace rehearse {

namespace {

using RankAt = std::function<std::int64_t(std::int64_t inside, std::int64_t across)>;

// Reduce inside each of `lines` lines of `length` ranks, all-reduce each rank's share across the lines, spread inside.
Rounds two_level(std::string_view inside, std::string_view across, const Group& line, std::int64_t lines, Range whole,
                 const RankAt& rank_at) {
    const std::int64_t length = line.size;
    const std::optional<Halves> halves = halves_of(inside, line, whole);
    require(halves.has_value(), "an algorithm that parse_algorithm accepted");
    std::vector<Rounds> shares;
    for (std::int64_t i = 0; i < length; ++i) {
        const Range share = halves->owned(i);
        if (i > 0 && share.begin == share.end) continue;
        shares.push_back(renamed(flat_all_reduce(across, {lines, 1}, share),
                                 [i, rank_at](std::int64_t number) { return rank_at(i, number); }));
    }
    const auto on_line = [rank_at](std::int64_t number, std::int64_t i) { return rank_at(i, number); };
    return in_sequence({copies(halves->reduce, lines, on_line), side_by_side(std::move(shares)),
                        copies(halves->spread, lines, on_line)});
}

}  // namespace

Rounds hierarchical(const Task& task) {
    const std::int64_t local = task.group.per_node;
    const Group line{local, local, task.group.rings};
    return two_level(task.algorithm.inside, task.algorithm.across, line, task.group.size / local, task.whole,
                     [local](std::int64_t inside, std::int64_t node) { return node * local + inside; });
}

// Half the data along rows first, half along columns first, so that the links of both are busy all the time (as on
// TPUs: Kumar and Jouppi 2020; Mikami et al. 2018 do one half only). Both halves reduce for R + C - 2 rounds.
Rounds torus(const Task& task) {
    const auto [rows, columns] = torus_sides(task.algorithm, task.group.size);
    if (rows == 1 || columns == 1) return flat_all_reduce("ring", task.group, task.whole);
    const auto along_rows = [columns = columns](std::int64_t column, std::int64_t row) {
        return row * columns + column;
    };
    const auto along_columns = [columns = columns](std::int64_t row, std::int64_t column) {
        return row * columns + column;
    };
    return joined(
        side_by_side({two_level("ring", "ring", {columns, 1}, rows, chunk(2, task.whole, 0), along_rows),
                      two_level("ring", "ring", {rows, 1}, columns, chunk(2, task.whole, 1), along_columns)}));
}

}  // namespace rehearse
