// SPDX-License-Identifier: Apache-2.0
// A convolution as what its time beyond the library's best algorithm depends on.
#pragma once

#include <optional>

#include "prices/convolution/families.hpp"
#include "prices/gaussian_process.hpp"

namespace rehearse {

struct LibraryPoint {
    FeaturePoint point;
    Seconds bound;  // the least time over the families
};

/// Nothing for what was never measured beside its algorithms: other passes than forward, other windows than 3x3 that
/// move by one pixel, groups, and other types than f32. The features are as many as kernel_point's of a convolution.
std::optional<LibraryPoint> library_point(const Problem& problem, const prices::Board& board);

}  // namespace rehearse
