// SPDX-License-Identifier: Apache-2.0
// Is it right, before it is fast?
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/op.hpp"
#include "kernels/backend.hpp"

namespace rehearse::bench {

struct Checked {
    double error = 0;      // |backend - reference| / |reference|, Euclidean norms over everything that the pass writes
    double tolerance = 0;  // an error above it is a wrong result
};

/// Runs `problem` on random data through each of `backends` and once through the reference, whose sums are in double.
/// tolerance: 1e-5 for sums in f32, more for those of more than 10^4 terms, as the operator has them in the mean; 1e-3
/// for algorithms that transform their input (Winograd, FFT), whose error grows with the tile (Barabasz et al. 2020).
/// In f16 and bf16 both sides are rounded at the end: twice the unit roundoff u on top. Where L products are summed in
/// f16, partial sums of random numbers walk as sqrt(n) and the rounding errors add up to u sqrt(L / 6) of the result,
/// root mean square: u sqrt(L) on top. A chunk has 64 products or, if more, one channel's taps. TF32 has 2^-10 on top.
std::vector<Checked> check(const Problem& problem, std::span<const kernels::Backend* const> backends,
                           std::uint64_t seed);

/// The same against another backend that is trusted: where plain loops would take minutes.
std::vector<Checked> check(const Problem& problem, std::span<const kernels::Backend* const> backends,
                           std::uint64_t seed, const kernels::Backend& trusted, Bytes limit);

}  // namespace rehearse::bench
