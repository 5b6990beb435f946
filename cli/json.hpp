// SPDX-License-Identifier: Apache-2.0
// The JSON that the commands print.
#pragma once

#include <nlohmann/json.hpp>

namespace rehearse::cli {

/// Keys stay in the order in which they were added.
using Json = nlohmann::ordered_json;

}  // namespace rehearse::cli
