// SPDX-License-Identifier: Apache-2.0
// How many of a group are waited for, where a share of them is enough.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace rehearse {

/// Of so many, the share `quorum`, rounded up, and one at least. 0.28 of 25 is 7, though its product in floating point
/// lies above that.
inline std::int64_t waited_for(double quorum, std::int64_t of) {
    const double share = quorum * static_cast<double>(of) * (1 - 1e-12);
    return std::max(std::int64_t{1}, static_cast<std::int64_t>(std::ceil(share)));
}

}  // namespace rehearse
