// SPDX-License-Identifier: Apache-2.0
// Networks that grow while they are trained: which network from which step on, in words.
#pragma once

#include <string>
#include <vector>

namespace rehearse::cli {

class CommandLine;

/// Steps `from` to before the next phase's, or to the end, are of `model`.
struct GrowthPhase {
    int from = 0;
    std::string model;
};

void add_growth(CommandLine& app, std::vector<std::string>& growth);
/// `model` and what "STEP:MODEL" of each of `growth` says, of a training of `steps`. InputError where steps do not
/// ascend within it.
std::vector<GrowthPhase> growth_phases(const std::string& model, const std::vector<std::string>& growth, int steps);
/// Steps of a phase.
int steps_of(const std::vector<GrowthPhase>& phases, std::size_t phase, int steps);

}  // namespace rehearse::cli
