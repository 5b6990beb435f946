// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace rehearse::models {

/// The names of machines() without reading their files (a third of a second in all), "this-host" last.
std::vector<std::string> machine_names();

}  // namespace rehearse::models
