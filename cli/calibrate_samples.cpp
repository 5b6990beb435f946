// SPDX-License-Identifier: Apache-2.0
#include "cli/calibrate_samples.hpp"

#include <fmt/format.h>

#include "calibrate/collective_times.hpp"
#include "cli/calibrate_report.hpp"
#include "cli/command.hpp"
#include "cli/json.hpp"
#include "cli/report.hpp"
#include "core/error.hpp"
#include "core/file.hpp"
#include "models/models.hpp"

namespace rehearse::cli {

int calibrate_samples(const CalibrateOptions& options) {
    if (options.machine.empty() || options.machine_out.empty())
        throw InputError(
            "--samples: give --machine NAME|FILE.toml, whose figures the samples replace, and --machine-out");
    Machine machine = models::load_machine(options.machine);
    Report report{document("calibration", {{"machine", options.machine}, {"files", options.samples}}), {}, ""};
    Json rows = Json::array(), collectives = Json::array();
    calibrate::FileSamples all;  // messages of all files: one fit
    for (const std::string& path : options.samples) {
        calibrate::FileSamples samples = calibrate::read_samples(read_file(path), path, options.ranks);
        for (const std::string& why : samples.skipped) talk(options.common, fmt::format("{}: skipped {}", path, why));
        for (const calibrate::CollectiveRow& row : samples.collectives)
            collectives.push_back(collective_row(path, row));
        rows.push_back({{"file", path},
                        {"where", samples.where},
                        {"problems", samples.compute.size()},
                        {"messages", samples.messages.size()},
                        {"skipped", samples.skipped.size()}});
        if (!samples.messages.empty()) {
            all.where += (all.where.empty() ? "" : " and ") + samples.where;
            all.messages.insert(all.messages.end(), samples.messages.begin(), samples.messages.end());
            samples.messages.clear();
        }
        machine = calibrate::apply(std::move(machine), samples, options.between);
    }
    machine = calibrate::apply(std::move(machine), all, options.between);
    report.document["rows"] = rows;
    report.document["collectives"] = collectives;
    report.document["file"] = options.machine_out;
    report.tables = {{"rows",
                      "samples",
                      {{"file", "file"},
                       {"where", "measured"},
                       {"problems", "problems", Show::count},
                       {"messages", "messages", Show::count},
                       {"skipped", "skipped", Show::count}}}};
    if (!collectives.empty()) report.tables.push_back(collective_table());
    const Messaging& fitted = options.between == calibrate::Between::nodes ? machine.across : machine.inside;
    report.footer =
        fmt::format("{}{}kept in {}", collectives.empty() ? "" : std::string{calibrate::bandwidth_words} + "\n",
                    !all.messages.empty() ? messaging_line("of these", fitted) : "", options.machine_out);
    replace_file(options.machine_out, models::to_toml(machine));
    print(report, options.common);
    return good;
}

}  // namespace rehearse::cli
