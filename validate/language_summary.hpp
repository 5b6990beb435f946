// SPDX-License-Identifier: Apache-2.0
// What predictions of transformers are worth, over rows of one set or of all.
#pragma once

#include <cstddef>
#include <optional>
#include <span>

#include "validate/language_bands.hpp"

namespace rehearse::validate {

/// An answer with its bands, cold and with a pilot.
struct BandedAnswer {
    LanguageAnswer answer;
    std::optional<LanguageBand> cold, anchored;
};

/// Predicted over measured memory, less one. Nothing where the row has no memory.
std::optional<double> memory_error(const LanguageAnswer& answer);

/// Errors are |predicted - measured| / measured.
struct LanguageSummary {
    struct Bands {
        double held = 0;   // share of the measured steps that lie in theirs
        double reach = 0;  // median share by which the upper end lies above the prediction
    };
    struct Memory {
        std::size_t rows = 0;  // that have a measured one
        double mean = 0, most = 0;
    };
    std::size_t rows = 0;
    double cold = 0;              // mean
    std::optional<double> pilot;  // mean over rows that another row anchors
    std::optional<double> tau;    // rank_correlation
    std::optional<Bands> cold_bands, pilot_bands;
    std::optional<Memory> memory;
    double middle = 0;  // median of the errors with a pilot, cold where there is none
};
/// Of at least one row.
LanguageSummary summarize(std::span<const BandedAnswer> rows);

}  // namespace rehearse::validate
