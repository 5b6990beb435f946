// SPDX-License-Identifier: Apache-2.0
// ONNX's Resize along one axis, as a matrix: what our Resize cannot say, every mode at every coordinates.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace rehearse::models {

struct Resampling {
    std::string mode = "nearest";            // "linear" and "cubic", too
    std::string coordinates = "half_pixel";  // coordinate_transformation_mode
    std::string rounding = "round_prefer_floor";
    double cubic = -0.75;           // cubic_coeff_a
    bool outside_excluded = false;  // exclude_outside
};

/// {to, from}, row by row: each of `to` pixels as a mixture of `from`, of which each becomes `scale`. Nothing for
/// coordinates that are not known (a crop's).
std::optional<std::vector<float>> resampled(const Resampling& by, std::int64_t from, std::int64_t to, double scale);

}  // namespace rehearse::models
