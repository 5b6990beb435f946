// SPDX-License-Identifier: Apache-2.0
// How problem strings are written, an example an operator: what error messages and --help show.
#pragma once

#include <span>
#include <string_view>

namespace rehearse {

struct ProblemForm {
    std::string_view kind, example, meaning;
};
/// Of the operators that people write by hand; parse_problem reads every example.
std::span<const ProblemForm> problem_forms();

/// The example of this kind of operator, or of a convolution where it has none here.
std::string_view example_of(std::string_view kind);

}  // namespace rehearse
