// SPDX-License-Identifier: Apache-2.0
// Ranges, units and defaults of options that their declarations do not carry, in one table.
#pragma once

#include <optional>
#include <string_view>

namespace rehearse::cli {

struct OptionNote {
    std::string_view command;         // "" for all
    std::string_view option;          // without its dashes
    std::optional<double> least;      // of a plain number: checked where the option is read
    std::string_view range;           // the unit beside `least`, or the range in words
    std::string_view otherwise = {};  // what happens without the option, where it has no default that can be printed
    bool is_above = false;            // `least` itself is too little
    std::optional<double> most = {};  // of a plain number: what more would take is beyond any memory or patience
};

/// The command's own, else that of all; null where there is none.
const OptionNote* note_of(std::string_view command, std::string_view option);

}  // namespace rehearse::cli
