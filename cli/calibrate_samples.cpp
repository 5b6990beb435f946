// SPDX-License-Identifier: Apache-2.0
#include "cli/calibrate_samples.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "calibrate/beyond_peak.hpp"
#include "calibrate/collective_times.hpp"
#include "calibrate/merged_samples.hpp"
#include "calibrate/message_fit.hpp"
#include "calibrate/quick.hpp"
#include "cli/calibrate_prices.hpp"
#include "cli/calibrate_report.hpp"
#include "cli/command.hpp"
#include "cli/json.hpp"
#include "cli/report.hpp"
#include "core/error.hpp"
#include "core/file.hpp"
#include "models/machine_file.hpp"
#include "models/models.hpp"

namespace rehearse::cli {

namespace {

/// Messages of all files, one fit for those between devices and one for those between nodes.
struct Measured {
    calibrate::Between between;
    calibrate::FileSamples samples{};
    std::vector<std::string> files{};  // of each collective
};

// The row on its nodes, of which --nodes tells where the file does not, and by the algorithm that predicts it there.
std::pair<calibrate::Between, calibrate::CollectiveRow> placed(calibrate::CollectiveRow row, const std::string& path,
                                                               const CalibrateOptions& options,
                                                               const Machine& machine) {
    if (row.hosts == 0)
        row.hosts = row.kind == calibrate::message_kind ? std::min<std::int64_t>(options.nodes, 2) : options.nodes;
    const calibrate::Between between = calibrate::between_of(row, options.between, machine, path);
    row = calibrate::placed(std::move(row), between, machine, path);
    calibrate::check_place(row, machine, path);
    if (row.kind != calibrate::message_kind) row.algorithm = algorithm_of(machine, row);
    return {between, row};
}

void add_file(std::array<Measured, 2>& sides, const calibrate::FileSamples& file, const std::string& path,
              const CalibrateOptions& options, const Machine& machine) {
    std::array<bool, 2> named{};
    for (std::size_t i = 0; i < file.messages.size(); ++i) {
        const auto [between, row] = placed(file.collectives[i], path, options, machine);
        const std::size_t number = between == calibrate::Between::devices ? 0 : 1;
        Measured& side = sides[number];
        if (!named[number]) side.samples.where += (side.samples.where.empty() ? "" : " and ") + file.where;
        named[number] = true;
        side.samples.messages.push_back(file.messages[i]);
        side.samples.collectives.push_back(row);
        side.files.push_back(path);
    }
}

// --ranks is for files that leave it open. Where all tell another number, who gave it means something else.
void check_ranks(std::int64_t asked, const std::vector<calibrate::FileSamples>& files,
                 const std::vector<std::string>& paths) {
    if (asked == 0 || std::ranges::any_of(files, &calibrate::FileSamples::asked_ranks)) return;
    for (std::size_t i = 0; i < files.size(); ++i) {
        for (const calibrate::CollectiveRow& row : files[i].collectives) {
            if (row.ranks != asked && row.kind != calibrate::message_kind)
                throw InputError(
                    fmt::format("--ranks {}: {} tells itself that it is of {} ranks", asked, paths[i], row.ranks));
        }
    }
}

// So are --nodes.
void check_nodes(std::int64_t asked, const std::vector<calibrate::FileSamples>& files,
                 const std::vector<std::string>& paths) {
    if (asked == 0) return;
    const auto open = [](const calibrate::CollectiveRow& row) { return row.hosts == 0; };
    for (const calibrate::FileSamples& file : files) {
        if (std::ranges::any_of(file.collectives, open)) return;
    }
    for (std::size_t i = 0; i < files.size(); ++i) {
        for (const calibrate::CollectiveRow& row : files[i].collectives) {
            if (row.hosts != asked)
                throw InputError(
                    fmt::format("--nodes {}: {} tells itself that it is of {} nodes", asked, paths[i], row.hosts));
        }
    }
}

std::string faster_than_possible(const calibrate::FileSamples& problems, const Machine& machine) {
    std::vector<KernelSample> kernels;
    for (const calibrate::Sample& sample : problems.compute) kernels.push_back({sample.problem, sample.median});
    return kernels.empty() ? "" : calibrate::beyond_peak(kernels, machine.classes.front());
}

// What was fitted of messages, of switches that sum, or of both.
std::string fitted_lines(const Machine& before, const Machine& after, calibrate::Between between) {
    if (between == calibrate::Between::nodes) return messaging_line("of these between nodes", after.across);
    const SwitchSums& sums = after.nodes.front().sums;
    const SwitchSums& had = before.nodes.front().sums;
    if (sums.rate.source == had.rate.source && sums.latency.source == had.latency.source)
        return messaging_line("of these between devices", after.inside);
    const std::string by_switches = fmt::format("a sum in the switches of a node: {} + bytes of a device / {}\n",
                                                to_string(sums.latency.value), to_string(sums.rate.value));
    const bool messages = after.inside.overhead.source != before.inside.overhead.source ||
                          after.inside.pieces.size() != before.inside.pieces.size();
    return by_switches + (messages ? messaging_line("of these between devices", after.inside) : "");
}

std::vector<calibrate::FileSamples> read_all(const CalibrateOptions& options) {
    std::vector<calibrate::FileSamples> files;
    for (const std::string& path : options.samples)
        files.push_back(calibrate::read_samples(read_file(path), path, options.ranks));
    check_ranks(options.ranks, files, options.samples);
    check_nodes(options.nodes, files, options.samples);
    return files;
}

// Fits a machine's messages of one side; returns what is said of them below the table.
std::string fit(Machine& machine, const Measured& side, Json& collectives, Json& warnings) {
    const Machine before = machine;
    machine = calibrate::with_messages(std::move(machine), side.samples, side.between, predicted_time);
    if (const std::string same = calibrate::kept(before, machine, side.between); !same.empty())
        warnings.push_back(same);
    std::vector<calibrate::RoundTrip> trips;
    for (std::size_t i = 0; i < side.files.size(); ++i) {
        const calibrate::CollectiveRow& row = side.samples.collectives[i];
        trips.push_back({row, calibrate::shown_by(machine, row, predicted_time)});
        if (row.kind != calibrate::message_kind) collectives.push_back(collective_row(side.files[i], trips.back()));
    }
    if (const std::string far = calibrate::not_met(trips); !far.empty()) warnings.push_back(far);
    return fitted_lines(before, machine, side.between);
}

}  // namespace

int calibrate_samples(const CalibrateOptions& options) {
    if (options.machine.empty() || options.machine_out.empty())
        throw InputError(
            "--samples: give --machine NAME|FILE.toml, whose figures the samples replace, and --machine-out");
    Machine machine = models::load_machine(options.machine);
    Report report{document("calibration", {{"machine", options.machine}, {"files", options.samples}}), {}, ""};
    Json rows = Json::array(), collectives = Json::array(), warnings = Json::array();
    calibrate::FileSamples problems;  // of all files
    std::array<Measured, 2> sides{Measured{calibrate::Between::devices}, Measured{calibrate::Between::nodes}};
    const std::vector<calibrate::FileSamples> files = read_all(options);
    for (std::size_t i = 0; i < files.size(); ++i) {
        const calibrate::FileSamples& samples = files[i];
        const std::string& path = options.samples[i];
        for (const std::string& why : samples.skipped) talk(options.common, fmt::format("{}: skipped {}", path, why));
        rows.push_back({{"file", path},
                        {"where", samples.where},
                        {"problems", samples.compute.size()},
                        {"messages", samples.messages.size()},
                        {"skipped", samples.skipped.size()}});
        problems.compute.insert(problems.compute.end(), samples.compute.begin(), samples.compute.end());
        add_file(sides, samples, path, options, machine);
    }
    problems.compute = calibrate::merged(problems.compute);
    machine = calibrate::apply(std::move(machine), problems);
    if (const std::string fast = faster_than_possible(problems, machine); !fast.empty()) warnings.push_back(fast);
    std::string fitted;
    for (const Measured& side : sides) {  // what goes on inside nodes is a part of what goes on between them
        if (!side.samples.messages.empty()) fitted += fit(machine, side, collectives, warnings);
    }
    for (const Json& warning : warnings) talk(options.common, "warning: " + warning.get<std::string>());
    report.document["rows"] = rows;
    report.document["collectives"] = collectives;
    report.document["warnings"] = warnings;
    report.document["file"] = options.machine_out;
    report.tables = {{"rows",
                      "samples",
                      {{"file", "file"},
                       {"where", "measured"},
                       {"problems", "problems", Show::count},
                       {"messages", "messages", Show::count},
                       {"skipped", "skipped", Show::count}}}};
    if (!collectives.empty()) report.tables.push_back(collective_table());
    report.footer =
        fmt::format("{}{}kept in {}", collectives.empty() ? "" : std::string{calibrate::bandwidth_words} + "\n", fitted,
                    options.machine_out);
    replace_file(options.machine_out, models::to_toml(machine, models::other_tables(options.machine)));
    print(report, options.common);
    return good;
}

}  // namespace rehearse::cli
