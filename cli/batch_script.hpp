// SPDX-License-Identifier: Apache-2.0
// --script FILE of `search`, and what the script is to ask for.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "cli/job.hpp"
#include "cli/report.hpp"
#include "predict/training.hpp"
#include "search/script.hpp"
#include "search/search.hpp"

namespace rehearse::cli {

class CommandLine;

struct BatchOptions {
    std::string file;  // empty: no script
    std::optional<search::Scheduler> scheduler;
    std::string command, account, constraint, queue;
    std::optional<bool> gpus;
};
void add_script(CommandLine& app, BatchOptions& batch);

/// What a script is made of; `job` has a global batch.
struct BatchScript {
    const BatchOptions& options;
    const JobOptions& job;
    const predict::Training& training;
    const std::string &machine, &framework;  // as the user names them
};
/// InputError, before the work, when there cannot be such a script.
void check(const BatchScript& script, const Common& common);
/// ... for so many devices, whose nodes must be alike: a batch system is asked for as many ranks on each.
void check(const BatchScript& script, const Machine& machine, std::span<const std::int64_t> devices);
/// Where the training takes longer than the queue lets a job run, the script is one of several jobs, each of which goes
/// on from the checkpoint of the one before; that is said.
void write_script(const BatchScript& script, const Machine& machine, const search::Ranked& best, const Common& common);

}  // namespace rehearse::cli
