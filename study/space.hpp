// SPDX-License-Identifier: Apache-2.0
// What a study varies: each parameter along one side of the unit cube.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace rehearse::study {

/// Either one of `choices`, or a number from `low` to `high`, whole or by its logarithm.
struct Parameter {
    std::string name;
    std::vector<std::string> choices{};
    double low = 0, high = 1;
    bool whole = false, logarithmic = false;
    bool operator==(const Parameter&) const = default;
};

/// "width=16|32|64", "depth=1..4" (whole, as both ends are), "learning-rate=1e-4..0.1:log". InputError says what is
/// wrong with it.
Parameter parse_parameter(std::string_view text);

/// A place in [0, 1) for each parameter.
using Point = std::vector<double>;
/// The parameter's value there, as the command line would take it.
std::string value_at(const Parameter& parameter, double place);

/// "gpt-h{width}-a2" with the values that its braces name. InputError for a name that no parameter has.
std::string with_values(std::string_view text, std::span<const Parameter> space, const Point& point);
/// Whether the text's braces name the parameter.
bool names(std::string_view text, const Parameter& parameter);

}  // namespace rehearse::study
