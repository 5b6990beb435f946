// SPDX-License-Identifier: Apache-2.0
// How far predictions of transformers may be off, told from other machines' rows.
#pragma once

#include "prices/interval.hpp"
#include "validate/language_rows.hpp"

namespace rehearse::validate {

/// A prediction and the band that should hold the measured step nine times in ten.
struct LanguageBand {
    prices::Interval<Seconds> band;
    double reach = 1;  // the factor by which its upper end lies above the prediction
    bool holds = false;
};

/// Bands of each answer, cold and with a pilot, from the errors on all rows of other sources on other boards: nothing
/// that was measured on the row's machine or by its source. Each source and board counts once, by the mean square of
/// the logarithms of its errors; a recipe of which something was assumed has at least the band of other such recipes.
/// Where a step waits for the host, whose speed nobody measured, the band is as much wider as that may change it.
struct LanguageBands {
    std::vector<std::optional<LanguageBand>> cold, anchored;  // in the order of the answers; empty: nothing to tell by
};
LanguageBands bands_of(const std::vector<LanguageAnswer>& answers);

}  // namespace rehearse::validate
