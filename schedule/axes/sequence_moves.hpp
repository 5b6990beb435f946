// SPDX-License-Identifier: Apache-2.0
// How the rows and heads of a sequence move between the ranks that share it. For context.cpp alone.
#pragma once

#include "schedule/axes/context.hpp"
#include "schedule/axes/part_maker.hpp"

namespace rehearse::schedule {

/// Each function adds layers to the part behind its layer `from`, and returns the last of them.
class SequenceMoves : public PartMaker {
public:
    SequenceMoves(const Network& network, const ContextAxis& axis)
        : PartMaker(network, axis.name, axis.index, axis.parts), ring_(axis.ring) {}

protected:
    const Shape& shape_of(int made) const { return part_.network.layers[static_cast<std::size_t>(made)].output; }

    int communicate(Movement movement, int from, Label label, Shape shape);
    /// All rows (Movement::gather), or the rank's of all (slice), by a ring one row of each rank after the other.
    int moved_whole(Movement movement, int from, const Label& label);
    /// Rows of `heads` heads, each `copies` times.
    int copied_heads(int from, std::int64_t heads, std::int64_t copies);
    int seen_as(int from, Shape to);
    /// From the rank's rows, of all heads in `blocks` tensors beside each other, to all rows of its heads.
    int to_heads(int from, std::int64_t blocks, const Shape& to);
    /// And back.
    int to_rows(int from);

    bool ring_;

private:
    int transposed(int from, std::vector<std::int64_t> order);
};

}  // namespace rehearse::schedule
