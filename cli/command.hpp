// SPDX-License-Identifier: Apache-2.0
// A subcommand is a record in one table; its file adds its options and gives back what to run.
#pragma once

#include <functional>
#include <span>
#include <string_view>

namespace CLI {
class App;
}  // namespace CLI

namespace rehearse::cli {

enum Exit { good = 0, check_failed = 1, wrong_input = 2, refused = 3, infeasible = 4, own_bug = 5 };

using Run = std::function<int()>;  // returns the exit code; throws what core/error.hpp names

struct Command {
    std::string_view name, summary, examples;
    Run (*add)(CLI::App& app);
};
std::span<const Command> commands();

Run add_predict(CLI::App& app);
Run add_search(CLI::App& app);
Run add_cluster(CLI::App& app);
Run add_explain(CLI::App& app);
Run add_run(CLI::App& app);
Run add_schedule(CLI::App& app);
Run add_compare(CLI::App& app);
Run add_bench(CLI::App& app);
Run add_calibrate(CLI::App& app);
Run add_validate(CLI::App& app);
Run add_export(CLI::App& app);
Run add_learners(CLI::App& app);
Run add_models(CLI::App& app);
Run add_frameworks(CLI::App& app);
Run add_machine(CLI::App& app);
Run add_machines(CLI::App& app);
Run add_completion(CLI::App& app);
Run add_manual(CLI::App& app);

}  // namespace rehearse::cli
