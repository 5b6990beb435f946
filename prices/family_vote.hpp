// SPDX-License-Identifier: Apache-2.0
// Which algorithm a library takes for a convolution, as told by those that ran at like shapes. The least of the bounds
// says what would be best; a library measures or guesses, and between two algorithms of nearly one time it is the
// kernels of the neighbourhood that know (docs/kernel_prices.md).
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "core/matrix.hpp"
#include "prices/gaussian_process.hpp"

namespace rehearse {

/// A measured kernel's features, and the family that ran: its place in prices::families().
struct RanFamily {
    FeaturePoint point;
    std::size_t family = 0;
};

/// One regression a family: 1 where it ran and 0 where another did, over the covariance of times; the largest wins.
class FamilyVote {
public:
    /// Of at least one kernel; n^3 / 3 multiply-adds, once for all families.
    FamilyVote(Covariance model, std::span<const RanFamily> ran);
    /// The family that is most likely to run at the point.
    std::size_t at(const FeaturePoint& point) const;

private:
    struct Candidate {
        std::size_t family;
        std::vector<double> weights;  // beside points_
    };
    Covariance model_;
    std::vector<FeaturePoint> points_;
    std::vector<Candidate> candidates_;
};

}  // namespace rehearse
