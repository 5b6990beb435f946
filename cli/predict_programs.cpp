// SPDX-License-Identifier: Apache-2.0
#include "cli/predict_programs.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <string>
#include <utility>

#include "cli/command.hpp"
#include "cli/command_line.hpp"
#include "cli/json.hpp"
#include "core/error.hpp"
#include "core/file.hpp"
#include "core/precision.hpp"
#include "models/models.hpp"
#include "prices/interval.hpp"
#include "sim/modes/programs.hpp"
#include "sim/rank_programs.hpp"
#include "trace/programs.hpp"
#include "trace/trace.hpp"

namespace rehearse::cli {

namespace {

// 12 of "job.12.et".
RankIndex rank_of(const std::string& file) {
    const std::string_view name = file;
    std::int64_t rank = -1;
    if (name.ends_with(".et")) {
        const std::string_view stem = name.substr(0, name.size() - 3);
        const std::size_t dot = stem.find_last_of("./");
        const std::string_view digits = dot == std::string_view::npos ? stem : stem.substr(dot + 1);
        const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), rank);
        if (error == std::errc{} && end == digits.data() + digits.size() && rank >= 0) return RankIndex{rank};
    }
    throw InputError(fmt::format("--schedule {}: its name does not say its rank; right would be PREFIX.0.et", file));
}

// A shell lists job.10.et before job.2.et.
std::vector<std::string> by_rank(const std::vector<std::string>& files) {
    std::vector<std::pair<RankIndex, std::string>> ranks;
    for (const std::string& file : files) ranks.emplace_back(rank_of(file), file);
    std::ranges::sort(ranks);
    std::vector<std::string> sorted;
    for (const auto& [rank, file] : ranks) {
        const auto next = std::ssize(sorted);
        if (rank < next) throw InputError(fmt::format("--schedule: {} and {} are of one rank", sorted.back(), file));
        if (rank > next)
            throw InputError(fmt::format("--schedule: the file of rank {} is missing: the next one is {}", next, file));
        sorted.push_back(file);
    }
    return sorted;
}

// The next rank's file, where it lies beside those that were given: groups of all ranks would be too small.
void warn_of_ranks_left_out(const std::string& last, std::size_t given, const Common& common) {
    const std::size_t digits = last.find_last_of("./", last.size() - 4) + 1;
    const std::string next = fmt::format("{}{}.et", last.substr(0, digits), given);
    if (std::error_code unknown; !std::filesystem::exists(next, unknown)) return;
    talk(common, fmt::format("warning: {} lies beside these files and was not given: what is among all ranks is among "
                             "{} here",
                             next, given));
}

Summary simulated(const RankPrograms& programs, const Machine& machine, const sim::ProgramOptions& options) {
    return summarize(sim::simulate_programs(programs, machine, options).timeline);
}

// Nodes of the host that take time: how many compute, and how many there are.
struct HostNodes {
    std::int64_t computing = 0, all = 0;
};
HostNodes host_nodes(const RankPrograms& programs) {
    HostNodes count;
    for (const std::vector<ProgramNode>& nodes : programs.ranks) {
        for (const ProgramNode& node : nodes) {
            if (node.kind != ProgramNode::Kind::load || !(node.time > Seconds{})) continue;
            ++count.all;
            if (sim::computes_on_host(node)) ++count.computing;
        }
    }
    return count;
}

const char* host_column(const HostNodes& host) {
    if (host.computing == 0) return "I/O wait";
    return host.computing == host.all ? "host" : "host, I/O wait";
}

Table table_of(const ProgramsAsked& asked, const std::string& machine, const HostNodes& host) {
    return {"points",
            fmt::format("{}{} on {}", asked.files.front(), asked.files.size() > 1 ? " ..." : "", machine),
            {{"ranks", "ranks", Show::count},
             {"nodes", "nodes", Show::count},
             {"step_s", "step", Show::seconds},
             {"step_low_s", "low", Show::seconds},
             {"step_high_s", "high", Show::seconds},
             {"compute_s", "compute", Show::seconds},
             {"exposed_comm_s", "exposed comm", Show::seconds},
             {"io_wait_s", host_column(host), Show::seconds},
             {"rest_s", "rest", Show::seconds},
             {"messages", "messages", Show::count}}};
}

std::string footer_of(std::int64_t untimed, std::int64_t computations, const HostNodes& host, Precision precision) {
    std::string text =
        fmt::format("{} of {} computations take the time that the files say", computations - untimed, computations);
    if (untimed > 0)
        text += fmt::format(
            ", {} without one the longer of operations at the device's peak for {} and bytes at its "
            "memory bandwidth",
            untimed, to_string(types_of(precision).product));
    if (host.computing > 0)
        text += fmt::format("; {} operators of the host (is_cpu_op), whose time counts where nothing else goes on",
                            host.computing);
    return text + "; low and high are of the messages' prices alone";
}

}  // namespace

void add_programs(CommandLine& app, ProgramsAsked& asked, const std::vector<std::string>& beside) {
    std::vector<std::string> others = app.names();
    std::erase_if(others, [&](const auto& name) { return std::ranges::find(beside, name) != beside.end(); });
    app.add_option("--schedule", asked.files,
                   "instead of a network what each rank does, as Chakra execution traces, one file a rank, whose name "
                   "ends in .RANK.et (schedule --to chakra, ASTRA-sim's); default: a network")
        ->option_text("PREFIX.0.et ...");
    app.add_option("--groups", asked.groups,
                   "with --schedule: the ranks of each group, {\"1\": [0, 1], ...}; default: as the traces say")
        ->option_text("FILE.json");
    app.add_option("--all-reduce", asked.all_reduce,
                   "with --schedule: the algorithm of all-reduces; default: as plans have it")
        ->option_text("ALGORITHM");
    asked.check = [&app, &asked, others] {
        const std::vector<std::string> own{"--groups", "--all-reduce"};
        const std::vector<std::string>& wrong = asked.files.empty() ? own : others;
        const auto found = std::ranges::find_if(wrong, [&](const std::string& name) { return app.has(name); });
        if (found == wrong.end()) return;
        if (asked.files.empty()) throw InputError(fmt::format("{} goes with --schedule, which is not given", *found));
        throw InputError(fmt::format(
            "{} does not go with --schedule: traces say what ranks do, without a network and a plan", *found));
    };
}

int predict_programs(const ProgramsAsked& asked, const std::string& machine_name, Precision precision,
                     const std::string& trace, const Common& common) {
    check_writable(trace, common);
    if (!trace.empty()) trace::format_of(trace);
    const Machine machine = models::load_machine(machine_name);
    const std::vector<std::string> files = by_rank(asked.files);
    warn_of_ranks_left_out(files.back(), files.size(), common);
    RankPrograms programs = trace::read_chakra(files, asked.groups.empty() ? std::string{} : read_file(asked.groups));
    const std::int64_t untimed = sim::price_untimed(programs, machine, types_of(precision).product);
    std::int64_t computations = 0;
    for (const std::vector<ProgramNode>& nodes : programs.ranks)
        computations += std::ranges::count_if(nodes, [](const ProgramNode& node) {
            return node.kind == ProgramNode::Kind::compute && node.time > Seconds{};
        });
    const HostNodes host = host_nodes(programs);
    sim::ProgramOptions options;
    options.links = !trace.empty();
    if (!asked.all_reduce.empty()) options.all_reduce = parse_algorithm(asked.all_reduce);
    sim::Prediction prediction = sim::simulate_programs(programs, machine, options);
    prediction.timeline.title = fmt::format("replay of {} on {}, predicted", asked.files.front(), machine.name);
    const Summary step = summarize(prediction.timeline);
    options.links = false;
    options.messages = ZScore{-prices::ninety_percent};
    const Summary low = simulated(programs, machine, options);
    options.messages = ZScore{prices::ninety_percent};
    const Summary high = simulated(programs, machine, options);

    const auto ranks = std::ssize(programs.ranks);
    Report report{document("replay", {{"schedule", asked.files}, {"machine", machine_name}}),
                  {table_of(asked, machine_name, host)},
                  footer_of(untimed, computations, host, precision)};
    report.document["machine"] = machine.name;
    report.document["points"] = Json::array({{{"ranks", ranks},
                                              {"nodes", locate(machine, ranks - 1).node + 1},
                                              {"step_s", step.step.value},
                                              {"step_low_s", low.step.value},
                                              {"step_high_s", high.step.value},
                                              {"compute_s", step.compute.value},
                                              {"exposed_comm_s", step.exposed_comm.value},
                                              {"io_wait_s", step.io_wait.value},
                                              {"rest_s", (step.rest + step.bubble).value},
                                              {"messages", prediction.flows},
                                              {"computations", computations},
                                              {"computations_by_roofline", untimed}}});
    print(report, common);
    if (trace.empty()) return good;
    trace::write(prediction.timeline, trace);
    talk(common, fmt::format("trace of {} ranks: {}", ranks, trace));
    return good;
}

}  // namespace rehearse::cli
