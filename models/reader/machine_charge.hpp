// SPDX-License-Identifier: Apache-2.0
// [charge] of a machine file.
#pragma once

#include <optional>

#include "models/charge.hpp"
#include "models/reader/machine_reader.hpp"

namespace rehearse::models {

std::optional<Charge> parse_charge(Reader& top);

}  // namespace rehearse::models
