// SPDX-License-Identifier: Apache-2.0
// Tests of both ways to simulate, by their names.
#pragma once

#include <gtest/gtest.h>

#include <ostream>

#include "sim/simulate.hpp"

namespace rehearse::sim {

inline void PrintTo(Mode mode, std::ostream* out) { *out << to_string(mode); }

inline constexpr Mode both_modes[] = {Mode::exact, Mode::folded};

}  // namespace rehearse::sim
