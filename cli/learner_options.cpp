// SPDX-License-Identifier: Apache-2.0
#include "cli/learner_options.hpp"

#include "cli/choice.hpp"
#include "cli/command_line.hpp"

namespace rehearse::cli {

void add_learner_options(CommandLine& app, bool& first_idle, std::vector<double>& paces) {
    add_choice<bool>(
        app, "--assign", first_idle, {{"equal", false}, {"idle", true}},
        "the next part of a device's batch goes to the learner that is idle first (Crossbow), or each takes "
        "equally many (default)");
    app.add_option("--learner-paces", paces,
                   "how many times as long each learner of a device takes for a part, like 1,3")
        ->delimiter(',')
        ->option_text("X[,X...]");
}

}  // namespace rehearse::cli
