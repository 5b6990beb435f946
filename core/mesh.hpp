// SPDX-License-Identifier: Apache-2.0
// Ranks on named axes, and their map to devices. The last axis varies fastest, so it lies inside the node first.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/index.hpp"

namespace rehearse {

struct Axis {
    std::string name;  // "data", "tensor", "pipe", ...
    std::int64_t size = 1;
};

/// Axes `first` to `last`, which stand next to each other, taken as one; of `first` some places alone, where `from` is
/// one: `from` and `to` (of a single axis), or all `between` them, too. Ranks at other places along it are each in a
/// group of their own.
struct JoinedAxes {
    int first = 0, last = 0;
    std::int64_t from = -1, to = -1;
    bool between = false;
    bool operator==(const JoinedAxes&) const = default;
};

struct Mesh {
    std::vector<Axis> axes;
    std::vector<JoinedAxes> joined{};  // known to all functions here as axes axes.size(), axes.size() + 1, ...
};

std::int64_t ranks(const Mesh& mesh);
int axis_index(const Mesh& mesh, std::string_view name);  // also of joined ones; -1 when absent
/// The axis that `first` to `last` make together, added to the mesh if it has not been asked for before.
int join(Mesh& mesh, int first, int last);
/// The axis of two places along `axis` (tied weights of a pipeline's first and last stage), likewise.
int pair_of(Mesh& mesh, int axis, std::int64_t from, std::int64_t to);
/// The axis of all places from `from` to `to` along `first` (the copies of a pipeline's stage), with the axes behind it
/// up to `last`, likewise.
int places_of(Mesh& mesh, int first, int last, std::int64_t from, std::int64_t to);
/// The axes that an axis is made of: itself, where it is one of the mesh's own.
JoinedAxes range_of(const Mesh& mesh, int axis);
/// Whether only some places of an axis of its own are in its groups.
bool is_partial(const Mesh& mesh, int axis);
/// Whether the ranks of a group along `axis` differ in their places along `single`, an axis of its own.
bool runs_along(const Mesh& mesh, int axis, int single);
bool is_axis(const Mesh& mesh, int axis);
std::string name_of(const Mesh& mesh, int axis);  // "data", "data+height+width", "pipe(0,3)", "pipe(0..3)+data"
std::int64_t size_of(const Mesh& mesh, int axis);
/// Where a rank lies along an axis; of some places of it, for ranks that are there, the so many-th.
std::int64_t place_on(const Mesh& mesh, int axis, RankIndex rank);
/// Distance in ranks between neighbours along an axis.
std::int64_t stride(const Mesh& mesh, int axis);
std::vector<std::int64_t> coordinates(const Mesh& mesh, RankIndex rank);
/// The rank `offset` places further along an axis, on which it stays.
RankIndex neighbour(const Mesh& mesh, int axis, RankIndex rank, std::int64_t offset);
RankIndex rank_at(const Mesh& mesh, const std::vector<std::int64_t>& coordinates);
/// All ranks that differ from `rank` only along `axis`, in the order of that axis.
std::vector<RankIndex> group_of(const Mesh& mesh, int axis, RankIndex rank);

}  // namespace rehearse
