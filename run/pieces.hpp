// SPDX-License-Identifier: Apache-2.0
// Pieces of tensors: what a rank holds of a weight, and how pieces of outputs are put together.
#pragma once

#include <cstddef>
#include <cstdint>
#include <set>
#include <span>
#include <vector>

#include "core/schedule.hpp"
#include "kernels/view.hpp"

namespace rehearse::run {

/// In place of an index: what fills up the last ranks' pieces (a vocabulary that ranks do not share evenly). It is zero
/// and stays so.
inline constexpr std::int64_t padding = -1;

/// Where a rank lies along all axes that the mesh knows: its coordinates, then its places on the joined ones.
std::vector<std::int64_t> places_on(const Mesh& mesh, RankIndex rank);

/// Where each element of a rank's piece of shape `own` lies in the whole tensor of shape `whole`, row-major; `cuts` are
/// those of this tensor, `along` the rank's places along all axes of the mesh.
std::vector<std::int64_t> indices_of_piece(const Shape& whole, const Shape& own, std::span<const Cut> cuts,
                                           std::span<const std::int64_t> along);

/// The weights of one layer of a part: where each of them lies among the weights of its layer of the whole network, or
/// `padding`.
std::vector<std::int64_t> indices_of_weights(const Schedule& schedule, const Origin& origin, const Op& op,
                                             std::span<const std::int64_t> along);

/// The running means, then variances, of a part's batch normalization of `channels` channels: where each of them lies
/// among those of its layer of the whole network, or `padding`.
std::vector<std::int64_t> indices_of_statistics(const Schedule& schedule, const Origin& origin, std::int64_t channels,
                                                std::span<const std::int64_t> along);

/// The shards whose samples are in the gradients that `rank` has of a bucket before ranks along `axis` (-1: none) bring
/// theirs together: those of all ranks at its place along it.
std::set<std::int64_t> shards_in(const Mesh& mesh, int axis, RankIndex rank);
/// By what these gradients are divided before they are applied: Adasum combines means, and what several ranks make
/// together of their samples is a sum of as many, what a copy of a stage makes of its micro-batches a part of one; 1
/// where gradients are summed.
double means_summed(const Schedule& schedule, int axis, RankIndex rank);

/// A tensor of `outer` runs, each of `parts` pieces of `inner` elements.
struct Joint {
    std::int64_t outer = 1, parts = 1, inner = 1;
};
/// Of a gather, slice, scatter, spread or exchange of `samples` samples: the whole, of which each rank has a piece.
Joint joint_of(const Communication& op, std::int64_t samples);

/// From piece after piece, as an all-gather leaves them, to the whole.
void join(const Joint& joint, kernels::ConstView pieces, kernels::View whole);
/// One's own piece of the whole.
void take(const Joint& joint, std::int64_t own, kernels::ConstView whole, kernels::View piece);

/// The transpose of a matrix of `rows` rows.
template <typename T>
std::vector<T> transposed(std::span<const T> matrix, std::int64_t rows) {
    const auto height = static_cast<std::size_t>(rows), width = matrix.size() / height;
    std::vector<T> turned(matrix.size());
    for (std::size_t row = 0; row < height; ++row) {
        for (std::size_t column = 0; column < width; ++column) {
            turned[column * height + row] = matrix[row * width + column];
        }
    }
    return turned;
}

/// Makes memory of its own for `count` elements; what was there is lost where it was smaller.
kernels::View room(std::vector<std::byte>& bytes, std::size_t count, DataType type);

/// to = from, of one type.
void copy(kernels::ConstView from, kernels::View to);

}  // namespace rehearse::run
