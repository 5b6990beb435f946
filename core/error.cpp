// SPDX-License-Identifier: Apache-2.0
#include "core/error.hpp"

#include <fmt/format.h>

namespace rehearse {

void require(bool condition, const char* what, const char* file, int line) {
    if (!condition) throw std::logic_error(fmt::format("{}:{}: bug in Rehearse: {}", file, line, what));
}

}  // namespace rehearse
