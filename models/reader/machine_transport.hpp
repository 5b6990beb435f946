// SPDX-License-Identifier: Apache-2.0
// [transport.NAME] of a machine file: what another network or software than the machine's usual one changes.
#pragma once

#include <string_view>
#include <vector>

#include "models/machine_file.hpp"
#include "models/reader/machine_parse.hpp"

namespace rehearse::models {

/// Reads all of them, so that a mistake shows whichever is wanted.
std::vector<Transport> parse_transports(Reader& top);

/// Applies the one of `transports` that is `wanted` (empty: none): link, latencies, messaging. InputError when there is
/// no such.
void apply_transport(const Reader& top, Machine& machine, const std::vector<Transport>& transports,
                     std::string_view wanted);

/// parse_machine, with a transport.
Machine parse_machine_with(std::string_view toml, const std::string& origin, std::string_view transport);

}  // namespace rehearse::models
