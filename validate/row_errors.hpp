// SPDX-License-Identifier: Apache-2.0
// How far predictions of published rows are off: what the tables of validate sum up.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "prices/interval.hpp"

namespace rehearse::validate {

/// Of one row or more; errors are |predicted - published| / published.
struct ErrorSummary {
    std::size_t rows = 0;
    double mean = 0, median = 0, p90 = 0;
    double in_band = 0;  // share of rows
    double width = 0;    // median of the bands' upper over their lower ends; 0: of no bands
};

class RowErrors {
public:
    void add(double predicted, double published, const prices::Interval<double>& band);
    void add(double error) { errors_.push_back(error); }  // of a prediction without a band
    bool empty() const { return errors_.empty(); }
    /// Linear interpolation between ranks, for 0 to 1.
    double quantile(double q) const;
    ErrorSummary summary() const;

private:
    std::vector<double> errors_, widths_;
    int in_band_ = 0;
};

/// Whose band it is, and where in it the published figure lies.
struct Residual {
    std::string system;
    double score = 0;  // |log(published / predicted)| over that of the band's end on the same side
    double width = 1;  // of the band: upper over lower end
};
Residual residual_of(const std::string& system, double predicted, double published,
                     const prices::Interval<double>& band);

/// What bands are worth on a system that nothing was fitted on (split conformal prediction; Vovk et al. 2005): for each
/// system, bands are stretched, as logarithms, so that they hold 90 % of all other systems' rows.
struct Coverage {
    double in_band = 0;  // share of all rows, each in its band so stretched
    double width = 1;    // median of these bands
};
/// So few rows of other systems say where nine in ten of them lie.
inline constexpr std::int64_t fewest_others = 20;
/// Of two systems or more.
Coverage coverage_without_system(const std::vector<Residual>& residuals);

}  // namespace rehearse::validate
