// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <array>
#include <cstdlib>
#include <deque>
#include <iostream>
#include <vector>

#include "cli/application.hpp"
#include "cli/build_text.hpp"
#include "cli/command.hpp"
#include "cli/command_line.hpp"
#include "cli/failure.hpp"
#include "cli/help.hpp"
#include "cli/outputs.hpp"
#include "cli/progress.hpp"
#include "core/error.hpp"
#include "core/quoting.hpp"
#include "core/text.hpp"

namespace rehearse::cli {

namespace {

constexpr std::array table{
    Command{"predict", "step time, throughput and scaling of a training run on a machine",
            "  rehearse predict --model resnet50 --machine summit --devices 6,384,27648 --plan data --precision mixed\n"
            "  rehearse predict --model net.onnx --machine cluster.toml --devices 16 --plan data:bucket=4MB --explain\n"
            "  rehearse predict --plan help",
            add_predict},
    Command{
        "search", "the best plans for a network on a machine, by screening all and simulating the best",
        "  rehearse search --model gpt3-175b --machine selene --devices 1024 --global-batch 1536 --precision mixed "
        "--optimizer adam\n"
        "  rehearse search --model resnet50 --machine summit --devices 96,384 --global-batch 3072 --dataset 1281167 "
        "--epochs 90 --objective cost --script job.sh --scheduler lsf\n"
        "  mpirun -n 8 rehearse search --model gpt3-175b --machine selene --devices 1024 --global-batch 1536",
        add_search},
    Command{
        "cluster", "many jobs on one machine: who gets which devices when, predicted and, with --run, trained",
        "  rehearse cluster --machine summit --devices 24 --workload poisson:model=resnet50+vgg16:jobs=40:hourly=60 "
        "--precision mixed --gantt jobs.svg\n"
        "  rehearse cluster --jobs jobs.csv --speeds speeds.csv --devices 16 --policy fifo,elastic --interval 10min\n"
        "  rehearse cluster --jobs today.csv --devices 2 --run trained --pilot 20 --policy elastic\n"
        "  rehearse cluster --workload help",
        add_cluster},
    Command{"report", "an application for machine time: scaling, jobs and charge, storage, as PDF and in other formats",
            "  rehearse report request.toml --output application\n"
            "  rehearse report weak.json strong.json --output scaling",
            add_report},
    Command{"run", "train for real with the same schedule, over MPI",
            "  mpirun -n 2 rehearse run --model resnet32 --plan data --batch 32 --steps 10 --trace measured.json\n"
            "  mpirun -n 4 rehearse run --model lenet5 --plan data:allreduce=halving --check-gradients",
            add_run},
    Command{"study", "search for hyper-parameters and architectures: trials on MPI ranks, predicted and run",
            "  mpirun -n 2 rehearse study --model 'gpt-h{width}-a2-l{depth}-v64@16' --space 'width=16|32|64' "
            "--space depth=1..3 --space learning-rate=1e-3..1:log --population 8\n"
            "  mpirun -n 2 rehearse study --model lenet5 --strategy pbt --space learning-rate=1e-3..1:log --space "
            "momentum=0..0.95\n"
            "  rehearse study --model resnet50 --space learning-rate=1e-3..1:log --machine summit --devices 96 "
            "--population 960 --steps 1000",
            add_study},
    Command{"schedule", "what each rank does under a plan, in which order; as a picture with --draw",
            "  rehearse schedule --model vgg16 --plan pipe=4:microbatches=8 --draw\n"
            "  rehearse schedule --plan pipe=2:schedule=interleaved:microbatches=4,data=2 --steps --format csv",
            add_schedule},
    Command{"compare", "a predicted and a measured timeline, step by step",
            "  rehearse compare predicted.json measured.json\n"
            "  rehearse compare predicted.json measured.json --fail-over 20% --format json",
            add_compare},
    Command{"bench", "time kernels: every implementation of a problem, checked against the reference",
            "  rehearse bench conv conv2d:n8c64h56w56k64r3s3:pad1:stride1:f32:forward\n"
            "  rehearse bench layer --suite resnet50 --batch 8 --out samples.json\n"
            "  rehearse bench conv --suite crossover --winners winners.svg --roofline roofline.svg\n"
            "  rehearse bench stream --plot sizes.png\n"
            "  mpirun -n 2 rehearse bench allreduce --min 64KiB --max 64MiB --algorithm halving,auto,mpi",
            add_bench},
    Command{"explain", "where a price comes from: of a kernel on a device, or of a step of a prediction",
            "  rehearse explain conv2d:n32c64h56w56k64r3s3:pad1:stride1:f16:forward --machine summit\n"
            "  rehearse explain --model resnet50 --machine summit --devices 384 --step bucket0:allreduce",
            add_explain},
    Command{"learners", "how many learners a device, with which batch, reach an accuracy soonest",
            "  rehearse learners --model resnet32 --machine titanx-server --devices 8 --dataset 50000 --epochs 30 "
            "--critical-batch 500\n"
            "  rehearse learners --model vgg16 --devices 1 --batches 8,16,32 --gain 10%",
            add_learners},
    Command{"calibrate", "measure this host, so that it can be predicted",
            "  mpirun -n 2 rehearse calibrate --quick\n"
            "  rehearse calibrate --quick --model vgg16 --batch 8 --machine-out my-host.toml\n"
            "  rehearse calibrate --trace mlp.json.gz --model mlp --batch 16 --machine cori-haswell --machine-out "
            "mine.toml",
            add_calibrate},
    Command{"validate", "how far prices are from kernels that they were not fitted on",
            "  rehearse validate --set deepbench --filter 'v100 f32'\n"
            "  rehearse validate --set deepbench --samples conv.csv --fail-over 15%",
            add_validate},
    Command{"export", "timelines to the formats of other tools; several become one file",
            "  rehearse export predicted.json measured.json --to perfetto both.pftrace\n"
            "  rehearse export measured.pftrace --to csv events.csv\n"
            "  rehearse export predicted.pftrace --to links links.csv",
            add_export},
    Command{"models", "the networks, or the layers of one",
            "  rehearse models\n  rehearse models resnet50 --format csv\n"
            "  rehearse models my-llama/config.json --sizes tokens=2048 --depth 3\n"
            "  rehearse models resnet50 net.onnx\n  rehearse models checked.onnx --check",
            add_models},
    Command{"frameworks", "what frameworks do beside their kernels, as predict --framework takes it",
            "  rehearse frameworks\n  rehearse frameworks chainermn", add_frameworks},
    Command{"machine", "a machine file of an own cluster, by ten questions or what other tools print",
            "  rehearse machine new --machine-out ours.toml\n"
            "  rehearse machine new --machine-out ours.toml --no-questions --name ours --nodes 16 --device h100-sxm "
            "--topo topo.txt --nic NDR --tree 8,2 --taper 2,1",
            add_machine},
    Command{"machines", "the machines, or one with the source of every figure",
            "  rehearse machines\n  rehearse machines summit", add_machines},
    Command{"completion", "what bash, zsh or fish needs to complete commands, options and names",
            "  rehearse completion bash\n  rehearse completion fish", add_completion},
    Command{"manual", "the manual page of the program or of a command, for man",
            "  rehearse manual\n  rehearse manual predict", add_manual},
};

// Under mpirun every rank sees the same wrong option: one message is enough.
bool speaks() {
    for (const char* variable : {"OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK"}) {
        if (const char* rank = std::getenv(variable)) return std::string_view{rank} == "0";
    }
    return true;
}

int complain(std::string_view text, int code) {
    if (speaks()) std::cerr << "rehearse: " << printable(text) << '\n';
    return code;
}

// CLI11's own message, with the option that was probably meant.
std::string explained(const CLI::App& app, const CLI::ParseError& error, int argc, char** argv) {
    std::vector<std::string> names;
    for (const CLI::App* sub : app.get_subcommands({})) {
        if (!sub->parsed()) continue;
        for (const CLI::Option* option : sub->get_options()) {
            for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
        }
    }
    std::vector<std::string_view> known;
    if (names.empty()) {
        for (const Command& command : table) known.push_back(command.name);
    } else {
        known.assign(names.begin(), names.end());
    }
    std::string text = error.what();
    // "--batch: 0: at least 1" of our own checks as "--batch 0: at least 1".
    if (const std::size_t colon = text.find(": "); error.get_name() == "ValidationError" && text.starts_with("--") &&
                                                   colon + 2 < text.size() &&
                                                   text.find(": ", colon + 2) != std::string::npos)
        text.erase(colon, 1);
    for (int i = 1; i < argc; ++i) {
        const std::string_view word = std::string_view{argv[i]}.substr(0, std::string_view{argv[i]}.find('='));
        if (std::ranges::find(known, word) != known.end()) continue;
        const std::string hint = did_you_mean(word, known);
        if (hint.empty() || (!names.empty() && !word.starts_with("--"))) continue;
        return fmt::format("unknown {} '{}'{}", names.empty() ? "command" : "option", word, hint);
    }
    if (names.empty()) text += fmt::format("; there are {}", join(known));
    return text;
}

/// `code`, if all that was written to stdout has gone there.
int said(int code) {
    std::cout.flush();
    if (!std::cout) throw BackendError("stdout cannot be written");
    return code;
}

std::string version_text(bool verbose) {
    const std::string version = std::string{"rehearse "} + REHEARSE_VERSION;
    return verbose ? fmt::format("{}\n{}", version, build_text().substr(0, build_text().find_last_not_of('\n') + 1))
                   : version;
}

int parse_and_run(int argc, char** argv) {
    CLI::App app{"Rehearse a deep-learning training run before you ask for the machine.", "rehearse"};
    bool verbose = false;
    app.add_flag("--verbose", verbose, "with --version: compiler, libraries and options of the build");
    app.set_version_flag(
        "--version", [&] { return version_text(verbose); }, "the version; with --verbose, how it was built");
    app.require_subcommand(1);
    app.formatter(help_formatter());
    app.option_defaults()->always_capture_default();
    std::deque<CommandLine> lines;
    std::vector<std::pair<const CLI::App*, Run>> runs;
    for (const Command& command : table) {
        CLI::App* sub = app.add_subcommand(std::string{command.name}, std::string{command.summary});
        sub->footer(fmt::format("{}{}Examples:\n{}", problems_help(command.name), columns_help(command.name),
                                command.examples));
        runs.emplace_back(sub, command.add(lines.emplace_back(*sub)));
        annotate(*sub);
    }
    try {
        app.parse(argc, argv);
    } catch (const CLI::Success& asked) {  // --help, --version
        return said(app.exit(asked));
    } catch (const CLI::ParseError& error) {
        return complain(explained(app, error, argc, argv), wrong_input);
    }
    if (verbose) return complain("--verbose stands with --version", wrong_input);
    for (const auto& [sub, run] : runs) {
        if (!sub->parsed()) continue;
        check_outputs(*sub);
        return said(run());
    }
    return wrong_input;
}

}  // namespace

std::span<const Command> commands() { return table; }

}  // namespace rehearse::cli

int main(int argc, char** argv) {
    using namespace rehearse;
    cli::listen_for_signals();
    try {
        return cli::parse_and_run(argc, argv);
    } catch (...) {
        const cli::Failure failure = cli::failure_of(std::current_exception());
        return cli::complain(failure.text, failure.code);
    }
}
