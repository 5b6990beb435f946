// SPDX-License-Identifier: Apache-2.0
#include "cli/clocks.hpp"

#include <fmt/format.h>

#include "cli/json.hpp"

namespace rehearse::cli {

Json clocks_document(const kernels::Clocks& clocks) {
    if (!clocks.refusal.empty()) return {{"unknown", clocks.refusal}};
    Json made{{"processors_hz", clocks.processors_hz}, {"memory_hz", clocks.memory_hz}};
    if (clocks.celsius) made["celsius"] = *clocks.celsius;
    if (clocks.watts) made["watts"] = *clocks.watts;
    made["held_down_by"] = clocks.held_down_by;
    return made;
}

std::string clocks_text(const kernels::Clocks& clocks) {
    if (!clocks.refusal.empty()) return "clocks unknown: " + clocks.refusal;
    const std::string held = clocks.held_down_by.empty() ? "" : ", held down by " + clocks.held_down_by;
    return fmt::format("{:.0f} MHz (memory {:.0f} MHz){}", 1e-6 * clocks.processors_hz, 1e-6 * clocks.memory_hz, held);
}

}  // namespace rehearse::cli
