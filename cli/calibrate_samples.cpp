// SPDX-License-Identifier: Apache-2.0
#include "cli/calibrate_samples.hpp"

#include <fmt/format.h>

#include <array>

#include "calibrate/collective_times.hpp"
#include "calibrate/message_fit.hpp"
#include "calibrate/quick.hpp"
#include "cli/calibrate_prices.hpp"
#include "cli/calibrate_report.hpp"
#include "cli/command.hpp"
#include "cli/json.hpp"
#include "cli/report.hpp"
#include "core/error.hpp"
#include "core/file.hpp"
#include "models/models.hpp"

namespace rehearse::cli {

namespace {

/// Messages of all files, one fit for those between devices and one for those between nodes.
struct Measured {
    calibrate::Between between;
    calibrate::FileSamples samples{};
    std::vector<std::string> files{};  // of each collective
};

void add_file(std::array<Measured, 2>& sides, const calibrate::FileSamples& file, const std::string& path,
              std::optional<calibrate::Between> asked, const Machine& machine) {
    std::array<bool, 2> named{};
    for (std::size_t i = 0; i < file.messages.size(); ++i) {
        const calibrate::CollectiveRow& row = file.collectives[i];
        const calibrate::Between between = calibrate::between_of(row, asked, machine, path);
        const std::size_t number = between == calibrate::Between::devices ? 0 : 1;
        Measured& side = sides[number];
        if (!named[number]) side.samples.where += (side.samples.where.empty() ? "" : " and ") + file.where;
        named[number] = true;
        side.samples.messages.push_back(file.messages[i]);
        side.samples.collectives.push_back(row);
        side.files.push_back(path);
    }
}

}  // namespace

int calibrate_samples(const CalibrateOptions& options) {
    if (options.machine.empty() || options.machine_out.empty())
        throw InputError(
            "--samples: give --machine NAME|FILE.toml, whose figures the samples replace, and --machine-out");
    Machine machine = models::load_machine(options.machine);
    Report report{document("calibration", {{"machine", options.machine}, {"files", options.samples}}), {}, ""};
    Json rows = Json::array(), collectives = Json::array(), warnings = Json::array();
    std::array<Measured, 2> sides{Measured{calibrate::Between::devices}, Measured{calibrate::Between::nodes}};
    for (const std::string& path : options.samples) {
        const calibrate::FileSamples samples = calibrate::read_samples(read_file(path), path, options.ranks);
        for (const std::string& why : samples.skipped) talk(options.common, fmt::format("{}: skipped {}", path, why));
        rows.push_back({{"file", path},
                        {"where", samples.where},
                        {"problems", samples.compute.size()},
                        {"messages", samples.messages.size()},
                        {"skipped", samples.skipped.size()}});
        machine = calibrate::apply(std::move(machine), samples);
        add_file(sides, samples, path, options.between, machine);
    }
    std::string fitted;
    for (const Measured& side : sides) {  // what goes on inside nodes is a part of what goes on between them
        if (side.samples.messages.empty()) continue;
        const bool nodes = side.between == calibrate::Between::nodes;
        machine = calibrate::with_messages(std::move(machine), side.samples, side.between, predicted_time);
        std::vector<calibrate::RoundTrip> trips;
        for (std::size_t i = 0; i < side.files.size(); ++i) {
            const calibrate::CollectiveRow row = calibrate::placed(side.samples.collectives[i], side.between, machine);
            trips.push_back({row, predicted_time(machine, row)});
            if (row.kind != calibrate::message_kind) collectives.push_back(collective_row(side.files[i], trips.back()));
        }
        if (const std::string far = calibrate::not_met(trips); !far.empty()) warnings.push_back(far);
        fitted += messaging_line(nodes ? "of these between nodes" : "of these between devices",
                                 nodes ? machine.across : machine.inside);
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
    replace_file(options.machine_out, models::to_toml(machine));
    print(report, options.common);
    return good;
}

}  // namespace rehearse::cli
