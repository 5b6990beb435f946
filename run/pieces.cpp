// SPDX-License-Identifier: Apache-2.0
#include "run/pieces.hpp"

#include <algorithm>
#include <cstring>

#include "core/error.hpp"
#include "core/index.hpp"

namespace rehearse::run {

std::vector<std::int64_t> places_on(const Mesh& mesh, RankIndex rank) {
    std::vector<std::int64_t> places = coordinates(mesh, rank);
    for (auto axis = static_cast<int>(mesh.axes.size()); is_axis(mesh, axis); ++axis)
        places.push_back(place_on(mesh, axis, rank));
    return places;
}

std::vector<std::int64_t> indices_of_piece(const Shape& whole, const Shape& own, std::span<const Cut> cuts,
                                           std::span<const std::int64_t> along) {
    std::vector<std::int64_t> indices{0};
    for (std::size_t dim = 0; dim < whole.size(); ++dim) {
        std::vector<std::int64_t> kept;  // of this dimension
        const auto cut = std::ranges::find(cuts, static_cast<int>(dim), &Cut::dim);
        if (cut == cuts.end()) {
            for (std::int64_t i = 0; i < whole[dim]; ++i) kept.push_back(i);
        } else {
            std::vector<std::int64_t> sizes = cut->sizes;
            if (sizes.empty()) sizes.assign(at(cut->blocks), whole[dim] / cut->blocks);
            std::int64_t begin = 0;
            for (const std::int64_t size : sizes) {
                const std::int64_t piece = size * own[dim] / whole[dim], first = along[at(cut->axis)] * piece;
                for (std::int64_t i = first; i < first + piece; ++i) kept.push_back(i < size ? begin + i : padding);
                begin += size;
            }
        }
        std::vector<std::int64_t> finer;
        finer.reserve(indices.size() * kept.size());
        for (const std::int64_t index : indices) {
            for (const std::int64_t i : kept) {
                finer.push_back(index == padding || i == padding ? padding : index * whole[dim] + i);
            }
        }
        indices = std::move(finer);
    }
    return indices;
}

std::vector<std::int64_t> indices_of_weights(const Schedule& schedule, const Origin& origin, const Op& op,
                                             std::span<const std::int64_t> along) {
    std::vector<std::int64_t> indices;
    if (origin.layer < 0) return indices;
    const std::vector<WeightTensor> whole = weights(schedule.network.layers[at(origin.layer)].op), mine = weights(op);
    const auto count = static_cast<int>(mine.size());
    std::int64_t begin = 0;
    for (int tensor = 0; tensor < origin.tensor + count; ++tensor) {
        const Shape& shape = whole[at(tensor)].shape;
        if (tensor >= origin.tensor) {
            std::vector<Cut> cuts;
            std::ranges::copy_if(origin.cuts, std::back_inserter(cuts),
                                 [&](const Cut& cut) { return cut.tensor == tensor; });
            Shape own = mine[at(tensor - origin.tensor)].shape;
            if (origin.transposed) std::ranges::reverse(own);
            for (const std::int64_t index : indices_of_piece(shape, own, cuts, along)) {
                indices.push_back(index == padding ? padding : begin + index);
            }
        }
        begin += elements(shape);
    }
    require(static_cast<std::int64_t>(indices.size()) == parameters(op),
            "the weights of a part are cut as its origin says");
    return origin.transposed ? transposed<std::int64_t>(indices, mine.front().shape[1]) : indices;
}

std::vector<std::int64_t> indices_of_statistics(const Schedule& schedule, const Origin& origin, std::int64_t channels,
                                                std::span<const std::int64_t> along) {
    const Op& op = computed(schedule.network.layers[at(origin.layer)].op);
    const std::int64_t whole = std::get<BatchNorm>(op).channels;
    // Channels are cut as gamma, the first tensor, is.
    std::vector<Cut> cuts;
    std::ranges::copy_if(origin.cuts, std::back_inserter(cuts), [](const Cut& cut) { return cut.tensor == 0; });
    const std::vector<std::int64_t> means = indices_of_piece({whole}, {channels}, cuts, along);
    require(static_cast<std::int64_t>(means.size()) == channels, "a part's channels are cut as its origin says");
    std::vector<std::int64_t> both = means;
    for (const std::int64_t channel : means) both.push_back(channel == padding ? padding : whole + channel);
    return both;
}

std::set<std::int64_t> shards_in(const Mesh& mesh, int axis, RankIndex rank) {
    std::set<std::int64_t> found;
    for (RankIndex other{0}; other < ranks(mesh); ++other) {
        if (axis < 0 || place_on(mesh, axis, other) == place_on(mesh, axis, rank)) found.insert(shard_of(mesh, other));
    }
    return found;
}

double means_summed(const Schedule& schedule, int axis, RankIndex rank) {
    if (std::ranges::none_of(schedule.classes, combines_gradients)) return 1;
    return static_cast<double>(shards_in(schedule.mesh, axis, rank).size()) / stage_of(schedule, rank).copies;
}

Joint joint_of(const Communication& op, std::int64_t samples) {
    Joint joint{samples / op.group, op.parts, op.group};
    for (std::size_t dim = 0; dim < op.shape.size(); ++dim) {
        (static_cast<std::int64_t>(dim) < op.dim ? joint.outer : joint.inner) *= op.shape[dim];
    }
    const bool cuts = op.movement == Movement::slice || op.movement == Movement::reduce_scatter;
    if (cuts || op.movement == Movement::all_to_all) joint.inner /= op.parts;
    return joint;
}

void join(const Joint& joint, kernels::ConstView pieces, kernels::View whole) {
    for (std::int64_t part = 0; part < joint.parts; ++part) {
        for (std::int64_t run = 0; run < joint.outer; ++run) {
            copy(pieces.subspan(at((part * joint.outer + run) * joint.inner), at(joint.inner)),
                 whole.subspan(at((run * joint.parts + part) * joint.inner), at(joint.inner)));
        }
    }
}

void take(const Joint& joint, std::int64_t own, kernels::ConstView whole, kernels::View piece) {
    for (std::int64_t run = 0; run < joint.outer; ++run) {
        copy(whole.subspan(at((run * joint.parts + own) * joint.inner), at(joint.inner)),
             piece.subspan(at(run * joint.inner), at(joint.inner)));
    }
}

kernels::View room(std::vector<std::byte>& bytes, std::size_t count, DataType type) {
    bytes.resize(count * static_cast<std::size_t>(size_of(type).value));
    return {bytes.data(), count, type};
}

void copy(kernels::ConstView from, kernels::View to) {
    require(from.type() == to.type() && from.size() == to.size(), "a copy of the same elements");
    if (!from.empty()) std::memcpy(to.bytes(), from.bytes(), from.size_bytes());
}

}  // namespace rehearse::run
