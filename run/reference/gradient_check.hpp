// SPDX-License-Identifier: Apache-2.0
// The same gradients once more, by one rank alone.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "core/schedule.hpp"
#include "run/program.hpp"

namespace rehearse::run {

struct GradientCheck {
    double error = 0, tolerance = 0;
};

/// Computes the gradients of `shards` shards one after the other with the same kernels and adds them in f64; `load`
/// puts a shard's samples into the program's input. A shard is what one rank had: batch normalization uses the
/// statistics of the rank's own batch, so that a single pass over the global batch would be another function.
///
/// error: the largest |summed over ranks - this| / (|shard 0| + |shard 1| + ...) of any weight.
/// tolerance: summing n terms in f32, in any order, errs by at most g = (n-1) u / (1 - (n-1) u) of the sum of their
/// magnitudes, u = 2^-24 (Higham 2002, section 4.2), and the terms themselves are equal bits: same kernels, as many
/// threads, same kind of processor. So the check sees a single lost, doubled or misplaced addend. On hosts with
/// different processors, whose kernels add in different orders, it may refuse what is only rounding. Gradients that are
/// sent in 16 bits are rounded once more each, so that g = n u / (1 - n u) with their u, and what is below f16's
/// smallest number, 2^-24, errs by up to half of that in each of the n.
GradientCheck check_gradients(Program& program, std::int64_t shards, std::int64_t batch_per_shard, std::uint64_t seed,
                              const std::function<void(std::int64_t shard)>& load, std::span<const float> gradients,
                              DataType wire = DataType::f32);

/// The same where Adasum combines the shards' gradients, bucket by bucket: written out as recursive pairs in f64.
///
/// error: the largest |combined by ranks - this| / (|shard 0| + |shard 1| + ...) of a bucket, in the Euclidean norm.
/// tolerance: at each of L levels a coefficient errs by (L + 4) u, from three numbers rounded to f32 and added L times,
/// and both products and their sum are rounded: (L + 8) u of |a| + |b|, as |(1 - a.b / 2|a|^2) a| <= |a| + |b| / 2.
/// What errs before a level grows by 3 at most there: 3^L (L + 8) u.
GradientCheck check_combined(Program& program, std::int64_t shards, std::int64_t batch_per_shard, std::uint64_t seed,
                             const std::function<void(std::int64_t shard)>& load, std::span<const float> gradients);

/// What Adasum makes of the ranks' vectors (Maleki et al. 2021), in f64: ranks beyond a power of two go to a neighbour
/// first, then neighbours are combined, then pairs of these, ...
std::vector<double> adasum_of(std::vector<std::vector<double>> vectors);

double summation_tolerance(std::int64_t terms, DataType wire = DataType::f32);

}  // namespace rehearse::run
