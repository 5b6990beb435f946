// SPDX-License-Identifier: Apache-2.0
// The tables of the reference pages that are not options of commands.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace rehearse::cli {

struct Meaning {
    std::string_view word, meaning;
};

/// The codes with which the program ends; enum Exit (cli/command.hpp) names them in the code.
std::span<const Meaning> exit_codes();

/// The environment variables that the program reads. A test looks for every getenv of the sources here.
std::span<const Meaning> environment_variables();

/// The pages of docs/reference in Markdown, by their file's name: plans, machine files, frameworks, exit codes and
/// environment variables.
std::vector<std::pair<std::string, std::string>> reference_pages();

}  // namespace rehearse::cli
