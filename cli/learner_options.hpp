// SPDX-License-Identifier: Apache-2.0
// Who of several learners of a device takes which part of its batch.
#pragma once

#include <vector>

namespace CLI {
class App;
}  // namespace CLI

namespace rehearse::cli {

/// --assign and --learner-paces.
void add_learner_options(CLI::App& app, bool& first_idle, std::vector<double>& paces);

}  // namespace rehearse::cli
