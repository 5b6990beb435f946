// SPDX-License-Identifier: Apache-2.0
// Who of several learners of a device takes which part of its batch.
#pragma once

#include <vector>

namespace rehearse::cli {

class CommandLine;

/// --assign and --learner-paces.
void add_learner_options(CommandLine& app, bool& first_idle, std::vector<double>& paces);

}  // namespace rehearse::cli
