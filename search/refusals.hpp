// SPDX-License-Identifier: Apache-2.0
// What is asked of a search that cannot be.
#pragma once

#include "search/search.hpp"

namespace rehearse::search {

/// InputError where a limit or a number of devices is none that the machine has, or a figure that is needed is missing.
void check(const Request& request, const Machine& machine);

}  // namespace rehearse::search
