// SPDX-License-Identifier: Apache-2.0
#include "schedule/axes/sequence_moves.hpp"

#include <fmt/format.h>

#include <utility>

#include "core/index.hpp"

namespace rehearse::schedule {

int SequenceMoves::communicate(Movement movement, int from, Label label, Shape shape) {
    Communication op{.movement = movement, .axis = axis_name_, .shape = std::move(shape), .parts = parts_};
    return append(label.with(fmt::format(".{}", to_string(movement))), std::move(op), {from}, {});
}

int SequenceMoves::moved_whole(Movement movement, int from, const Label& label) {
    const Shape shape = shape_of(from);
    if (!ring_) return communicate(movement, from, label, shape);
    const bool slices = movement == Movement::slice;
    const Shape turns = slices ? Shape{shape[0] / parts_, parts_, shape[1]} : Shape{shape[0], 1, shape[1]};
    Communication op{.movement = movement, .axis = axis_name_, .shape = turns, .parts = parts_, .dim = 1};
    const int come =
        append(label.with(fmt::format(".{}", to_string(movement))), std::move(op), {seen_as(from, turns)}, {});
    return seen_as(come, {slices ? shape[0] / parts_ : shape[0] * parts_, shape[1]});
}

int SequenceMoves::copied_heads(int from, std::int64_t heads, std::int64_t copies) {
    if (copies == 1) return from;
    const Shape rows = shape_of(from);
    const std::int64_t each = rows.back() / heads;
    const int seen = seen_as(from, {rows.front(), heads, 1, each});
    const Rearrangement more{
        .kind = "expand", .inputs = {shape_of(seen)}, .output = {rows.front(), heads, copies, each}};
    const int made = append(Label{part_.network.layers[at(from)]}.with(".copies"), more, {seen}, {});
    return seen_as(made, {rows.front(), heads * copies * each});
}

int SequenceMoves::seen_as(int from, Shape to) {
    if (shape_of(from) == to) return from;
    return append(Label{part_.network.layers[at(from)]}.with(".view"), Flatten{shape_of(from), std::move(to)}, {from},
                  {});
}

int SequenceMoves::transposed(int from, std::vector<std::int64_t> order) {
    Rearrangement op{.kind = "transpose", .inputs = {shape_of(from)}, .output = {}, .numbers = std::move(order)};
    for (const std::int64_t axis : op.numbers) op.output.push_back(op.inputs.front()[at(axis)]);
    return append(Label{part_.network.layers[at(from)]}.with(".transpose"), std::move(op), {from}, {});
}

int SequenceMoves::to_heads(int from, std::int64_t blocks, const Shape& to) {
    const Shape rows = shape_of(from);
    const std::int64_t each = rows.back() / blocks / parts_;
    const int turned = transposed(seen_as(from, {rows.front(), blocks, parts_, each}), {2, 0, 1, 3});
    const int come = communicate(Movement::all_to_all, turned, Label{part_.network.layers[at(from)]}, shape_of(turned));
    return seen_as(come, to);
}

int SequenceMoves::to_rows(int from) {
    const Shape all = shape_of(from);
    const int sent = seen_as(from, {parts_, all.front() / parts_, all.back()});
    const int come = communicate(Movement::all_to_all, sent, Label{part_.network.layers[at(from)]}, shape_of(sent));
    return seen_as(transposed(come, {1, 0, 2}), {all.front() / parts_, parts_ * all.back()});
}

}  // namespace rehearse::schedule
