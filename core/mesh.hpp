// SPDX-License-Identifier: Apache-2.0
// Ranks on named axes, and their map to devices. The last axis varies fastest, so it lies inside the node first.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace rehearse {

struct Axis {
    std::string name;  // "data", "tensor", "pipe", ...
    std::int64_t size = 1;
};

struct Mesh {
    std::vector<Axis> axes;
};

std::int64_t ranks(const Mesh& mesh);
int axis_index(const Mesh& mesh, std::string_view name);  // -1 when absent
/// Distance in ranks between neighbours along an axis.
std::int64_t stride(const Mesh& mesh, int axis);
std::vector<std::int64_t> coordinates(const Mesh& mesh, std::int64_t rank);
std::int64_t rank_at(const Mesh& mesh, const std::vector<std::int64_t>& coordinates);
/// All ranks that differ from `rank` only along `axis`, in the order of that axis.
std::vector<std::int64_t> group_of(const Mesh& mesh, int axis, std::int64_t rank);

}  // namespace rehearse
