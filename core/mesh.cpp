// SPDX-License-Identifier: Apache-2.0
#include "core/mesh.hpp"

#include <algorithm>

#include "core/error.hpp"

namespace rehearse {

std::int64_t ranks(const Mesh& mesh) {
    std::int64_t product = 1;
    for (const Axis& axis : mesh.axes) product *= axis.size;
    return product;
}

int axis_index(const Mesh& mesh, std::string_view name) {
    for (std::size_t i = 0; i < mesh.axes.size(); ++i) {
        if (mesh.axes[i].name == name) return static_cast<int>(i);
    }
    for (int i = static_cast<int>(mesh.axes.size()); is_axis(mesh, i); ++i) {
        if (name_of(mesh, i) == name) return i;
    }
    return -1;
}

JoinedAxes range_of(const Mesh& mesh, int axis) {
    require(is_axis(mesh, axis), "no such axis");
    const auto single = static_cast<int>(mesh.axes.size());
    return axis < single ? JoinedAxes{axis, axis} : mesh.joined[static_cast<std::size_t>(axis - single)];
}

namespace {

/// Of what is joined, added where it is new.
int number_of(Mesh& mesh, const JoinedAxes& wanted) {
    const auto known = std::ranges::find(mesh.joined, wanted);
    const auto index = static_cast<int>(known - mesh.joined.begin());
    if (known == mesh.joined.end()) mesh.joined.push_back(wanted);
    return index;
}

}  // namespace

int join(Mesh& mesh, int first, int last) {
    const auto single = static_cast<int>(mesh.axes.size());
    require(first >= 0 && first <= last && last < single, "axes to join stand in the mesh, in this order");
    return first == last ? first : single + number_of(mesh, {first, last});
}

int pair_of(Mesh& mesh, int axis, std::int64_t from, std::int64_t to) {
    const auto single = static_cast<int>(mesh.axes.size());
    require(axis >= 0 && axis < single && 0 <= from && from < to && to < size_of(mesh, axis), "two places on an axis");
    return single + number_of(mesh, {axis, axis, from, to});
}

int places_of(Mesh& mesh, int first, int last, std::int64_t from, std::int64_t to) {
    const auto single = static_cast<int>(mesh.axes.size());
    require(first >= 0 && first <= last && last < single, "axes to join stand in the mesh, in this order");
    require(0 <= from && from < to && to < size_of(mesh, first), "places on an axis");
    return single + number_of(mesh, {first, last, from, to, true});
}

bool is_partial(const Mesh& mesh, int axis) { return range_of(mesh, axis).from >= 0; }

bool runs_along(const Mesh& mesh, int axis, int single) {
    const JoinedAxes range = range_of(mesh, axis);
    return range.first <= single && single <= range.last;
}

bool is_axis(const Mesh& mesh, int axis) {
    return axis >= 0 && static_cast<std::size_t>(axis) < mesh.axes.size() + mesh.joined.size();
}

std::string name_of(const Mesh& mesh, int axis) {
    const JoinedAxes range = range_of(mesh, axis);
    std::string name = mesh.axes[static_cast<std::size_t>(range.first)].name;
    if (range.from >= 0) {
        const std::string_view between = range.between ? ".." : ",";
        name.append("(")
            .append(std::to_string(range.from))
            .append(between)
            .append(std::to_string(range.to))
            .append(")");
    }
    for (int i = range.first + 1; i <= range.last; ++i) name += "+" + mesh.axes[static_cast<std::size_t>(i)].name;
    return name;
}

std::int64_t size_of(const Mesh& mesh, int axis) {
    const JoinedAxes range = range_of(mesh, axis);
    if (range.from >= 0 && !range.between) return 2;
    std::int64_t product =
        range.between ? range.to - range.from + 1 : mesh.axes[static_cast<std::size_t>(range.first)].size;
    for (int i = range.first + 1; i <= range.last; ++i) product *= mesh.axes[static_cast<std::size_t>(i)].size;
    return product;
}

std::int64_t place_on(const Mesh& mesh, int axis, RankIndex rank) {
    const JoinedAxes range = range_of(mesh, axis);
    if (range.from >= 0 && !range.between) return place_on(mesh, range.first, rank) == range.from ? 0 : 1;
    if (range.between) {
        const std::int64_t first = range.from * stride(mesh, range.first);
        const std::int64_t all = stride(mesh, range.first) * size_of(mesh, range.first);
        return (rank % all - first) / stride(mesh, axis);
    }
    return rank / stride(mesh, axis) % size_of(mesh, axis);
}

std::int64_t stride(const Mesh& mesh, int axis) {
    const JoinedAxes range = range_of(mesh, axis);
    std::int64_t product = range.from < 0 || range.between ? 1 : range.to - range.from;
    for (auto i = static_cast<std::size_t>(range.last) + 1; i < mesh.axes.size(); ++i) product *= mesh.axes[i].size;
    return product;
}

std::vector<std::int64_t> coordinates(const Mesh& mesh, RankIndex rank) {
    std::int64_t left = rank;
    std::vector<std::int64_t> result(mesh.axes.size());
    for (std::size_t i = mesh.axes.size(); i-- > 0;) {
        result[i] = left % mesh.axes[i].size;
        left /= mesh.axes[i].size;
    }
    return result;
}

RankIndex neighbour(const Mesh& mesh, int axis, RankIndex rank, std::int64_t offset) {
    const std::int64_t place = place_on(mesh, axis, rank) + offset;
    require(place >= 0 && place < size_of(mesh, axis), "a message stays on its axis");
    return RankIndex{rank + offset * stride(mesh, axis)};
}

RankIndex rank_at(const Mesh& mesh, const std::vector<std::int64_t>& coordinates) {
    require(coordinates.size() == mesh.axes.size(), "one coordinate an axis");
    std::int64_t rank = 0;
    for (std::size_t i = 0; i < coordinates.size(); ++i) rank = rank * mesh.axes[i].size + coordinates[i];
    return RankIndex{rank};
}

std::vector<RankIndex> group_of(const Mesh& mesh, int axis, RankIndex rank) {
    const std::int64_t step = stride(mesh, axis);
    const std::int64_t size = size_of(mesh, axis);
    if (const JoinedAxes range = range_of(mesh, axis); range.from >= 0) {
        const std::int64_t place = place_on(mesh, range.first, rank);
        const bool in =
            range.between ? place >= range.from && place <= range.to : place == range.from || place == range.to;
        if (!in) return {rank};
        std::vector<RankIndex> some;
        for (std::int64_t i = 0; i < size; ++i) some.emplace_back(rank + (i - place_on(mesh, axis, rank)) * step);
        return some;
    }
    const std::int64_t first = rank - rank / step % size * step;
    std::vector<RankIndex> group;
    group.reserve(static_cast<std::size_t>(size));
    for (std::int64_t i = 0; i < size; ++i) group.emplace_back(first + i * step);
    return group;
}

}  // namespace rehearse
