// SPDX-License-Identifier: Apache-2.0
#include "models/frameworks.hpp"
#include "cli/json.hpp"

#include <fmt/format.h>

#include <memory>

#include "cli/command.hpp"
#include "cli/command_line.hpp"
#include "cli/report.hpp"

namespace rehearse::cli {

namespace {

struct Options {
    Common common;
    std::string name;
};

int list(const Options& options) {
    Report report{document("frameworks", Json::object()), {}, "predict --framework NAME; without it it is rehearse"};
    report.document["frameworks"] = Json::array();
    for (const models::FrameworkProfile& each : models::frameworks()) {
        report.document["frameworks"].push_back(
            {{"name", each.name}, {"summary", each.summary}, {"settings", each.settings.size()}});
    }
    report.tables = {{"frameworks",
                      "",
                      {{"name", "framework"}, {"settings", "settings", Show::count}, {"summary", "  what it is"}}}};
    print(report, options.common);
    return good;
}

int show(const Options& options) {
    const models::FrameworkProfile profile = models::load_framework(options.name);
    Report report{document("framework", {{"framework", options.name}}), {}, ""};
    report.document["summary"] = profile.summary;
    report.document["settings"] = Json::array();
    for (const models::FrameworkWord& word : models::framework_words()) {
        for (const models::FrameworkSetting& setting : profile.settings) {
            if (setting.name != word.name) continue;
            report.document["settings"].push_back({{"setting", setting.name},
                                                   {"value", setting.value},
                                                   {"meaning", word.meaning},
                                                   {"source", setting.source}});
        }
    }
    report.tables = {{"settings",
                      fmt::format("{}: {}", profile.name, profile.summary),
                      {{"setting", "setting"}, {"value", "value"}, {"source", "source"}}}};
    print(report, options.common);
    return good;
}

}  // namespace

Run add_frameworks(CommandLine& app) {
    const auto options = std::make_shared<Options>();
    app.add_option("NAME", options->name, "a framework's name or a .toml file; without it all are listed");
    add_common(app, options->common);
    return [options] { return options->name.empty() ? list(*options) : show(*options); };
}

}  // namespace rehearse::cli
