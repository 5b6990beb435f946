// SPDX-License-Identifier: Apache-2.0
#include "schedule/methods/buckets.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "core/error.hpp"
#include "core/index.hpp"

namespace rehearse::schedule {

namespace {

int joined(const std::set<int>& axes, Mesh& mesh) {
    if (axes.empty()) return -1;
    const int first = *axes.begin(), last = *axes.rbegin();
    for (int i = first; i <= last; ++i) {
        if (axes.contains(i) || size_of(mesh, i) == 1) continue;
        throw InputError(fmt::format(
            "gradients are summed along '{}' and '{}' together, so no other axis may stand between them; move '{}'",
            name_of(mesh, first), name_of(mesh, last), name_of(mesh, i)));
    }
    return join(mesh, first, last);
}

/// The same places along the first axis of `places`, with `axes`, which stand right behind it.
int with_axes_behind(const JoinedAxes& places, const std::set<int>& axes, Mesh& mesh) {
    const int last = axes.empty() ? places.first : *axes.rbegin();
    for (int i = places.first + 1; i <= last; ++i) {
        if (axes.contains(i) || size_of(mesh, i) == 1) continue;
        throw InputError(
            fmt::format("gradients of a stage's copies are summed along '{}' and '{}' together, so no other axis may "
                        "stand between them; move '{}'",
                        name_of(mesh, places.first), name_of(mesh, last), name_of(mesh, i)));
    }
    return places_of(mesh, places.first, last, places.from, places.to);
}

}  // namespace

int with_copies(int axis, int pipe, std::int64_t first, std::int64_t last, Mesh& mesh) {
    std::set<int> axes;
    for (int i = 0; axis >= 0 && i < static_cast<int>(mesh.axes.size()); ++i) {
        if (size_of(mesh, i) > 1 && runs_along(mesh, axis, i)) axes.insert(i);
    }
    if (!axes.empty() && *axes.begin() < pipe) {
        throw InputError(
            fmt::format("gradients of a stage's copies are summed along '{0}' and '{1}' together: write '{1}' behind "
                        "'{0}'",
                        name_of(mesh, pipe), name_of(mesh, *axes.begin())));
    }
    return with_axes_behind({pipe, pipe, first, last, true}, axes, mesh);
}

std::vector<int> axes_of_sums(const Part& part, Mesh& mesh, bool along_data) {
    const int data = axis_index(mesh, "data");
    std::vector<int> result;
    for (const Origin& origin : part.origins) {
        std::set<int> axes{origin.summed.begin(), origin.summed.end()};
        const bool cut = data >= 0 && std::ranges::any_of(origin.cuts, [&](const Cut& each) {
                             return runs_along(mesh, each.axis, data);
                         });
        if (along_data && data >= 0 && !cut) axes.insert(data);
        result.push_back(joined(axes, mesh));
    }
    return result;
}

BySamples by_samples(int axis, Mesh& mesh) {
    std::set<int> shared, own;
    const bool copies = axis >= 0 && is_partial(mesh, axis);  // each with micro-batches of its own
    for (int i = 0; axis >= 0 && i < static_cast<int>(mesh.axes.size()); ++i) {
        const Axis& each = mesh.axes[at(i)];
        if (each.size == 1 || !runs_along(mesh, axis, i)) continue;
        if (copies && i == range_of(mesh, axis).first) continue;
        (shards({.axes = {each}}) > 1 ? own : shared).insert(i);
    }
    if (copies) return {joined(shared, mesh), with_axes_behind(range_of(mesh, axis), own, mesh)};
    return {joined(shared, mesh), joined(own, mesh)};
}

std::vector<Bucket> make_buckets(const Network& network, DataType wire, Bytes first, Bytes limit,
                                 std::span<const int> axes, std::span<const int> begins,
                                 const std::map<int, std::pair<int, std::int64_t>>& ties,
                                 const std::vector<bool>& pieces) {
    std::vector<Bucket> buckets;
    // By axis; what is updated as soon as its gradients come has a bucket of its own, which nobody sums or updates.
    std::map<std::tuple<int, bool, bool>, std::size_t> open;
    for (std::size_t i = network.layers.size(); i-- > 0;) {
        if (std::ranges::find(begins, static_cast<int>(i) + 1) != begins.end()) open.clear();
        const std::int64_t count = parameters(network.layers[i].op);
        if (count == 0) continue;
        if (const auto tie = ties.find(static_cast<int>(i)); tie != ties.end()) {
            buckets.push_back({{static_cast<int>(i)}, count, axes[i], tie->second.first, tie->second.second});
            continue;
        }
        const auto [entry, fresh] = open.try_emplace(
            {axes[i], updates_directly(network.layers[i].op), !pieces.empty() && pieces[i]}, buckets.size());
        if (fresh) buckets.push_back({{}, 0, axes[i]});
        Bucket& bucket = buckets[entry->second];
        bucket.layers.push_back(static_cast<int>(i));
        bucket.elements += count;
        const Bytes enough = entry->second == 0 ? std::min(first, limit) : limit;
        if (static_cast<double>(bucket.elements) * size_of(wire) >= enough) open.erase(entry);
    }
    return buckets;
}

}  // namespace rehearse::schedule
