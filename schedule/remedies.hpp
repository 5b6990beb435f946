// SPDX-License-Identifier: Apache-2.0
// What would make a job fit into its devices' memory: found by trying.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "schedule/plan.hpp"

namespace rehearse::schedule {

/// A plan or another option in place of the one given, as it is written on the command line.
struct Remedy {
    std::string text;  // "--plan data=4:zero=3", "--batch 8", "--global-batch 64"
    Bytes memory;      // of the fullest rank then
    int changes = 1;   // how many things it changes
};

/// Returns what the fullest rank takes, where the schedule's own account (memory_use) is not what counts.
using MemoryOf = std::function<Bytes(const Plan&, const Schedule&)>;

/// Plans like `plan`, and jobs like `job`, with one thing changed (ZeRO's stage, recomputation of blocks or all,
/// sequence parallelism, more micro-batches, ranks of the data axis given to tensor or pipe, the batch, the precision)
/// that take at most `capacity`. Where no single change is enough, two or three: further changes to what the three
/// kinds of change that save most have made, the mildest of each kind. A global batch stays as it is when the plan
/// changes, and is what becomes smaller where the batch does. On unlike devices the tightest is held to its own memory,
/// and `memory` is that share of `capacity`. Empty when these are not enough either. Makes a schedule for each trial.
std::vector<Remedy> remedies(const Network& network, const Machine& machine, const Plan& plan, const Job& job,
                             Bytes capacity, const MemoryOf& memory_of = {});

}  // namespace rehearse::schedule
