// SPDX-License-Identifier: Apache-2.0
// A table for people: at most 100 columns wide, numbers with separators, sources that repeat listed once below it.
#pragma once

#include <string>

#include "cli/json.hpp"
#include "cli/report.hpp"

namespace rehearse::cli {

/// Its title, its rows, and what stands below. A table that is too wide has its widest text wrapped; where that is not
/// enough it goes on below, with the columns that tell the rows apart repeated.
std::string table_text(const Json& rows, const Table& table);

/// "1,055,000": four significant digits, thousands apart. Below a ten-thousandth as 1.2e-07.
std::string number_text(double value);
/// A whole number with its thousands apart.
std::string count_text(double value);
/// Seconds up to two minutes as "1.5 ms", then minutes, hours and days.
std::string time_text(double seconds);

}  // namespace rehearse::cli
