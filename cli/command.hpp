// SPDX-License-Identifier: Apache-2.0
// A subcommand is a record in one table; its file adds its options and gives back what to run.
#pragma once

#include <functional>
#include <span>
#include <string_view>

namespace rehearse::cli {

class CommandLine;

enum Exit { good = 0, check_failed = 1, wrong_input = 2, refused = 3, infeasible = 4, own_bug = 5 };

using Run = std::function<int()>;  // returns the exit code; throws what core/error.hpp names

struct Command {
    std::string_view name, summary, examples;
    Run (*add)(CommandLine& app);
};
std::span<const Command> commands();

Run add_predict(CommandLine& app);
Run add_search(CommandLine& app);
Run add_cluster(CommandLine& app);
Run add_explain(CommandLine& app);
Run add_run(CommandLine& app);
Run add_study(CommandLine& app);
Run add_schedule(CommandLine& app);
Run add_compare(CommandLine& app);
Run add_bench(CommandLine& app);
Run add_calibrate(CommandLine& app);
Run add_validate(CommandLine& app);
Run add_export(CommandLine& app);
Run add_learners(CommandLine& app);
Run add_models(CommandLine& app);
Run add_frameworks(CommandLine& app);
Run add_machine(CommandLine& app);
Run add_machines(CommandLine& app);
Run add_completion(CommandLine& app);
Run add_manual(CommandLine& app);

}  // namespace rehearse::cli
