// SPDX-License-Identifier: Apache-2.0
// Figures as people write them, with their values beside.
#pragma once

#include <fmt/format.h>

#include <cmath>
#include <cstdint>
#include <string>

#include "core/units.hpp"
#include "report/document/document.hpp"

namespace rehearse::report {

/// "1,281,167".
inline std::string grouped(std::int64_t value) {
    std::string digits = fmt::format("{}", value < 0 ? -value : value);
    for (std::size_t at = digits.size(); at > 3; at -= 3) digits.insert(at - 3, ",");
    return value < 0 ? "-" + digits : digits;
}

/// With so many digits that count, never as a power of ten: "0.0123", "12.3", "12,300".
inline std::string rounded(double value, int digits = 3) {
    if (value == 0 || !std::isfinite(value)) return "0";
    const int behind = digits - 1 - static_cast<int>(std::floor(std::log10(std::abs(value))));
    if (behind <= 0) {
        const double unit = std::pow(10, -behind);
        return grouped(static_cast<std::int64_t>(std::llround(std::round(value / unit) * unit)));
    }
    return fmt::format("{:.{}f}", value, behind);
}

inline Cell words(std::string text) { return {std::move(text), {}}; }
inline Cell count(std::int64_t value) { return {grouped(value), value}; }
inline Cell figure(double value, int digits = 3) { return {rounded(value, digits), value}; }
/// A share as percent, to a tenth.
inline Cell percent(double share) { return {fmt::format("{:.1f}", 100 * share), 100 * share}; }

}  // namespace rehearse::report
