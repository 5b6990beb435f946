// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "core/network.hpp"

namespace rehearse::models {

/// Sentences of `words` words in either language (models/zoo/gnmt.cpp).
Network gnmt(std::int64_t words);

}  // namespace rehearse::models
