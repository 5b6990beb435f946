// SPDX-License-Identifier: Apache-2.0
#include "cli/growth.hpp"

#include <fmt/format.h>

#include "cli/command_line.hpp"
#include "core/error.hpp"
#include "core/text.hpp"

namespace rehearse::cli {

void add_growth(CommandLine& app, std::vector<std::string>& growth) {
    app.add_option("--grow", growth,
                   "from this step of --steps on train that network, whose layers of the same names keep their "
                   "weights; once for each network after --model")
        ->option_text("STEP:MODEL");
}

std::vector<GrowthPhase> growth_phases(const std::string& model, const std::vector<std::string>& growth, int steps) {
    std::vector<GrowthPhase> phases{{0, model}};
    for (const std::string& text : growth) {
        const std::size_t colon = text.find(':');
        if (colon == 0 || colon == std::string::npos || colon + 1 == text.size()) {
            throw InputError(fmt::format("--grow '{}': a step and a network, like 100:gpt-h64-a4-l4-v512@32", text));
        }
        const std::int64_t from = parse_int(text.substr(0, colon), fmt::format("--grow '{}'", text));
        if (from <= phases.back().from || from >= steps) {
            throw InputError(
                fmt::format("--grow '{}': after step {} and before step {}, where the training ends "
                            "(--steps)",
                            text, phases.back().from, steps));
        }
        phases.push_back({static_cast<int>(from), text.substr(colon + 1)});
    }
    return phases;
}

int steps_of(const std::vector<GrowthPhase>& phases, std::size_t phase, int steps) {
    return (phase + 1 < phases.size() ? phases[phase + 1].from : steps) - phases[phase].from;
}

}  // namespace rehearse::cli
