// SPDX-License-Identifier: Apache-2.0
#include "validate/library_summary.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/error.hpp"

namespace rehearse::validate {

namespace {

constexpr Bytes long_enough{256e6};  // from here on the bus bandwidth counts as what a table tends to

double quantile(std::vector<double> values, double share) {
    std::ranges::sort(values);
    return values[static_cast<std::size_t>(share * static_cast<double>(values.size() - 1) + 0.5)];
}

LibrarySummary::Quantiles quantiles(const std::vector<double>& errors) {
    return {quantile(errors, 0.5), quantile(errors, 0.9)};
}

}  // namespace

void LibraryErrors::add(const LibraryAnswer& answer, const std::optional<LibraryAnswer>& unseen) {
    errors_.push_back(std::abs(answer.error()));
    if (unseen) left_out_.push_back(std::abs(unseen->error()));
    if (answer.band.contains(answer.row.time)) ++inside_;
    if (answer.row.bytes < long_enough) return;
    asymptotic_.push_back(std::abs(answer.row.time / answer.predicted.time - 1));
    if (unseen) asymptotic_left_out_.push_back(std::abs(unseen->row.time / unseen->predicted.time - 1));
}

LibrarySummary LibraryErrors::summary() const {
    require(!empty(), "a summary of something");
    LibrarySummary summary;
    summary.rows = errors_.size();
    summary.errors = quantiles(errors_);
    summary.in_band = static_cast<double>(inside_) / static_cast<double>(errors_.size());
    if (!left_out_.empty()) summary.left_out = quantiles(left_out_);
    if (!asymptotic_.empty()) summary.asymptotic = quantile(asymptotic_, 0.5);
    if (!asymptotic_left_out_.empty()) summary.asymptotic_left_out = quantile(asymptotic_left_out_, 0.5);
    return summary;
}

}  // namespace rehearse::validate
