// SPDX-License-Identifier: Apache-2.0
// From what `rehearse run` was asked for to a training.
#pragma once

#include <vector>

#include "cli/run_report.hpp"
#include "core/schedule.hpp"
#include "run/train.hpp"

namespace rehearse::cli {

/// Collective: the network of the job by its plan, with steps printed as they end.
Trained train_network(const run::Session& session, const RunOptions& options);
/// One network after the other, each from the weights that the one before it has left in its file. What is returned is
/// of the last one, with the steps of all and the gradients that were furthest off.
Trained train_growing(const run::Session& session, const RunOptions& options, std::vector<GrownPhase>& phases);

}  // namespace rehearse::cli
