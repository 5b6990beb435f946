// SPDX-License-Identifier: Apache-2.0
// TOML as every reader here takes it: parsed, or refused with its line.
#pragma once

#include <string>
#include <string_view>

#include <toml++/toml.h>

namespace rehearse::models {

/// InputError "file:line: not TOML: why", also for keys of more than 32 parts ("a.b.c"): a table within tables within
/// tables, each taken apart by a call of its own, must not overflow the stack.
toml::table parse_toml(std::string_view text, const std::string& origin);

}  // namespace rehearse::models
