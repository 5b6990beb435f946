// SPDX-License-Identifier: Apache-2.0
#include "core/mesh.hpp"

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
    return -1;
}

std::int64_t stride(const Mesh& mesh, int axis) {
    require(axis >= 0 && axis < static_cast<int>(mesh.axes.size()), "no such axis");
    std::int64_t product = 1;
    for (std::size_t i = static_cast<std::size_t>(axis) + 1; i < mesh.axes.size(); ++i) product *= mesh.axes[i].size;
    return product;
}

std::vector<std::int64_t> coordinates(const Mesh& mesh, std::int64_t rank) {
    std::vector<std::int64_t> result(mesh.axes.size());
    for (std::size_t i = mesh.axes.size(); i-- > 0;) {
        result[i] = rank % mesh.axes[i].size;
        rank /= mesh.axes[i].size;
    }
    return result;
}

std::int64_t rank_at(const Mesh& mesh, const std::vector<std::int64_t>& coordinates) {
    require(coordinates.size() == mesh.axes.size(), "one coordinate an axis");
    std::int64_t rank = 0;
    for (std::size_t i = 0; i < coordinates.size(); ++i) rank = rank * mesh.axes[i].size + coordinates[i];
    return rank;
}

std::vector<std::int64_t> group_of(const Mesh& mesh, int axis, std::int64_t rank) {
    const std::int64_t step = stride(mesh, axis);
    const std::int64_t size = mesh.axes[static_cast<std::size_t>(axis)].size;
    const std::int64_t first = rank - rank / step % size * step;
    std::vector<std::int64_t> group;
    group.reserve(static_cast<std::size_t>(size));
    for (std::int64_t i = 0; i < size; ++i) group.push_back(first + i * step);
    return group;
}

}  // namespace rehearse
