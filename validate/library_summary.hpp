// SPDX-License-Identifier: Apache-2.0
// How far prices of collectives are off, over rows of one table or of all.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "validate/library_tables.hpp"

namespace rehearse::validate {

/// Errors are |predicted - measured| / measured of times, but where said. Quantiles are the errors at the nearest rank.
struct LibrarySummary {
    struct Quantiles {
        double median = 0, p90 = 0;
    };
    std::size_t rows = 0;
    Quantiles errors;
    std::optional<Quantiles> left_out;  // by figures from other machines' rows alone
    std::optional<double> asymptotic;   // median of the bus bandwidth's, from 256 MB on
    std::optional<double> asymptotic_left_out;
    double in_band = 0;  // share of rows
};

class LibraryErrors {
public:
    /// `unseen`: the same row by figures from other machines' rows alone.
    void add(const LibraryAnswer& answer, const std::optional<LibraryAnswer>& unseen);
    bool empty() const { return errors_.empty(); }
    /// Of at least one row.
    LibrarySummary summary() const;

private:
    std::vector<double> errors_, asymptotic_, left_out_, asymptotic_left_out_;
    std::size_t inside_ = 0;
};

}  // namespace rehearse::validate
