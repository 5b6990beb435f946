// SPDX-License-Identifier: Apache-2.0
// K-FAC over ranks (Osawa et al. 2019; Pauloski et al. 2020): who inverts which layers' factors, and what that is.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/schedule.hpp"

namespace rehearse {

/// K-FAC (Martens and Grosse 2015; distributed: Osawa et al. 2019, Pauloski et al. 2020). The gradient D {k + 1, n} of
/// a dense layer's weights, its bias the last row, becomes (A + d I)^-1 D (G + d I)^-1, where A is the mean over all
/// rows of the batch of a a^T, with a their inputs and a 1, G that of g g^T, g the gradients of a row's own loss by the
/// outputs, and d^2 the damping. Then the optimizer takes it for the gradient. Of a layer that ranks
/// have in pieces each piece has factors of its own, the blocks of A and G between its rows and its columns.
struct Curvature {
    int period = 0;  // updates by one pair of inverses; 0: there are none
    double damping = 0.03;
    bool operator==(const Curvature&) const = default;
};
/// Elements of both factors' lower triangles.
std::int64_t factor_elements(const MatMul& dense);

/// The dense layer that a layer is on rows of inputs: itself, or of a 2-D convolution its filters on what lies under
/// them at each pixel {channels, kernel} (Grosse and Martens 2016). Nothing of tied, grouped and fused ones and of all
/// else: these are updated by their gradients as they are.
std::optional<MatMul> as_dense(const Op& op);
bool is_preconditioned(const Op& op);

/// Losses that the rows of one sample have: one each, or, of the pixels of a convolution, one together. So the mean of
/// a a^T is over rows of dense layers, and over samples of convolutions; that of g g^T is over rows of both.
std::int64_t losses_of_sample(const Op& op);

/// First layers of buckets, so that each such layer is alone in its own.
std::vector<int> preconditioned_alone(const Network& network);

/// Shards whose ranks sum factors and share out the layers: all of them, or, where groups have servers in common, those
/// of a group; 1 where ranks have models of their own. A rank's place among these is shard_of it, modulo as many.
std::int64_t shards_with_factors(const Schedule& schedule);

/// Owns a layer, or a piece of one, that no two ranks of different shards have.
inline constexpr std::int64_t every_shard = -2;
/// By bucket: the shard (shard_of a rank, below `shards`) that inverts, largest layers first, each to whom has least to
/// do by the cubes of both factors' rows (Pauloski et al. 2020, section IV); -1: not preconditioned.
std::vector<std::int64_t> owners_of(const Part& part, std::int64_t shards);
/// A shard's buckets, the costliest first.
std::vector<int> owned_by(const Part& part, const std::vector<std::int64_t>& owners, std::int64_t shard);
/// Those of the shard that has most to do.
std::vector<int> most_owned(const Part& part, const std::vector<std::int64_t>& owners);

const Op& op_of(const Part& part, int bucket);
MatMul dense_of(const Part& part, int bucket);
/// Rows of the factor of the inputs, the 1 of a bias included.
inline std::int64_t input_rows(const MatMul& dense) { return dense.k + (dense.bias ? 1 : 0); }

/// As products: a factor is the weights' gradient of a layer whose inputs are its errors. An inverse by Cholesky has
/// n^3 operations (n^3 / 3 to factor, twice that to invert) and is priced as a product of so many.
Problem factor_problem(const MatMul& dense, Precondition::Side side, std::int64_t batch);
Problem inverse_problem(const MatMul& dense, Precondition::Side side);
Problem direction_problem(const MatMul& dense, Precondition::Side side);

}  // namespace rehearse
