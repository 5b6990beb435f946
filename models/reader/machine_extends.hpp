// SPDX-License-Identifier: Apache-2.0
// A machine file with those that it extends.
#pragma once

#include <list>
#include <string>
#include <string_view>

#include "models/reader/machine_reader.hpp"

namespace rehearse::models {

/// `extends = "eos"` or "other.toml" (its path, from the folder of the file that names it): what a file does not say,
/// that machine says. InputError: not TOML, no such machine, files that extend each other.
class Extended {
public:
    Extended(std::string_view text, const std::string& origin);
    /// Valid as long as this.
    Reader reader() const;

private:
    std::list<toml::table> tables_;  // nearest first; readers keep their addresses
    std::string origin_;
};

}  // namespace rehearse::models
