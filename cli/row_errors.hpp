// SPDX-License-Identifier: Apache-2.0
// How far predictions of published rows are off: what the tables of validate sum up.
#pragma once

#include <nlohmann/json.hpp>

#include <algorithm>
#include <numeric>
#include <vector>

namespace rehearse::cli {

/// |predicted - published| / published of some rows, and how many of these lie in their bands.
struct RowErrors {
    std::vector<double> errors;
    int in_band = 0;

    void add(double error, bool inside) {
        errors.push_back(error);
        if (inside) ++in_band;
    }
    double quantile(double q) const {
        std::vector<double> sorted = errors;
        std::ranges::sort(sorted);
        const double at = q * static_cast<double>(sorted.size() - 1);
        const auto below = static_cast<std::size_t>(at);
        const std::size_t above = std::min(below + 1, sorted.size() - 1);
        return sorted[below] + (at - static_cast<double>(below)) * (sorted[above] - sorted[below]);
    }
    /// Of one row or more.
    nlohmann::ordered_json json() const {
        const auto count = static_cast<double>(errors.size());
        return {{"rows", errors.size()},
                {"mean_error", std::accumulate(errors.begin(), errors.end(), 0.0) / count},
                {"median_error", quantile(0.5)},
                {"p90_error", quantile(0.9)},
                {"in_band", in_band / count}};
    }
};

}  // namespace rehearse::cli
