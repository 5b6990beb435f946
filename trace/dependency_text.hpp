// SPDX-License-Identifier: Apache-2.0
// Dependencies as a text that a trace carries: a line a step, "stream micro-batch after,after name".
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "core/dependencies.hpp"

namespace rehearse::trace {

/// Names the instants of a Perfetto trace that each carry Dependencies.
inline constexpr std::string_view dependencies_instant = "rehearse.dependencies";

std::string ranks_text(const Dependencies& dependencies);  // "0 1 2"
std::string steps_text(const Dependencies& dependencies);
/// Nothing where the texts are none of these.
std::optional<Dependencies> dependencies_in(std::string_view ranks, std::string_view steps);

}  // namespace rehearse::trace
