// SPDX-License-Identifier: Apache-2.0
#include "validate/row_errors.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "core/error.hpp"

namespace rehearse::validate {

namespace {

double quantile_of(std::vector<double> values, double q) {
    require(!values.empty(), "a quantile of something");
    std::ranges::sort(values);
    const double at = q * static_cast<double>(values.size() - 1);
    const auto below = static_cast<std::size_t>(at);
    const std::size_t above = std::min(below + 1, values.size() - 1);
    return values[below] + (at - static_cast<double>(below)) * (values[above] - values[below]);
}

}  // namespace

void RowErrors::add(double predicted, double published, const prices::Interval<double>& band) {
    add(std::abs(predicted - published) / published);
    widths_.push_back(band.high / band.low);
    if (band.contains(published)) ++in_band_;
}

double RowErrors::quantile(double q) const { return quantile_of(errors_, q); }

ErrorSummary RowErrors::summary() const {
    const auto count = static_cast<double>(errors_.size());
    return {.rows = errors_.size(),
            .mean = std::accumulate(errors_.begin(), errors_.end(), 0.0) / count,
            .median = quantile(0.5),
            .p90 = quantile(0.9),
            .in_band = in_band_ / count,
            .width = widths_.empty() ? 0 : quantile_of(widths_, 0.5)};
}

Residual residual_of(const std::string& system, double predicted, double published,
                     const prices::Interval<double>& band) {
    const double end = published > predicted ? band.high : band.low;
    return {system, std::log(published / predicted) / std::log(end / predicted), band.high / band.low};
}

Coverage coverage_without_system(const std::vector<Residual>& residuals) {
    std::map<std::string, double> stretch;  // by system left out
    for (const Residual& of : residuals) {
        if (stretch.contains(of.system)) continue;
        std::vector<double> others;
        for (const Residual& other : residuals) {
            if (other.system != of.system) others.push_back(other.score);
        }
        require(!others.empty(), "rows of two systems");
        stretch.emplace(of.system, quantile_of(std::move(others), 0.9));
    }
    int inside = 0;
    std::vector<double> widths;
    for (const Residual& row : residuals) {
        if (row.score <= stretch[row.system]) ++inside;
        widths.push_back(std::pow(row.width, stretch[row.system]));
    }
    return {inside / static_cast<double>(residuals.size()), quantile_of(std::move(widths), 0.5)};
}

}  // namespace rehearse::validate
