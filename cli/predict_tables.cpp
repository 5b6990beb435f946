// SPDX-License-Identifier: Apache-2.0
#include "cli/predict_tables.hpp"

#include <fmt/format.h>

#include <utility>

#include "cli/json.hpp"
#include "models/models.hpp"
#include "predict/explain.hpp"
#include "predict/remarks.hpp"
#include "prices/tile_model.hpp"
#include "report/prediction_json.hpp"
#include "schedule/memory.hpp"
#include "schedule/remarks.hpp"

namespace rehearse::cli {

namespace {

std::int64_t devices_of(const predict::Prediction& prediction) { return prediction.points.back().figures.devices; }

void add_band(Report& report, const predict::Prediction& prediction) {
    Json& rows = report.document["band"] = Json::array();
    for (const predict::BandPart& part : predict::band_parts(prediction)) {
        rows.push_back({{"what", part.what}, {"factor", part.factor}, {"source", part.source}});
    }
    if (rows.empty()) return;
    report.tables.push_back(
        {"band",
         "why the step may be longer or shorter, nine times in ten: by each part alone",
         {{"what", "what is uncertain"}, {"factor", "times", Show::number}, {"source", "known from"}}});
}

// What the step was held against, and did not beat.
void add_bounds(Report& report, const predict::Point& point) {
    report.document["bounds"] = Json::array();
    for (const auto& [what, least] :
         {std::pair{"operations at peak rate, or bytes at memory bandwidth", point.bounds.compute},
          std::pair{"bytes over the links of a device, or the NICs of its nodes", point.bounds.wire}}) {
        report.document["bounds"].push_back(
            {{"what", what}, {"least_s", least.value}, {"share", least / point.figures.time.step}});
    }
    report.tables.push_back(
        {"bounds",
         "its certificate: nothing takes less than the machine's figures allow",
         {{"what", "what is needed"}, {"least_s", "least", Show::seconds}, {"share", "of step", Show::percent}}});
}

}  // namespace

void add_machine_notes(Report& report, const Machine& machine, const models::FrameworkProfile& profile,
                       const predict::Framework& framework) {
    const auto say = [&](const std::string& line) {
        report.footer += fmt::format("{}{}", report.footer.empty() ? "" : "\n", line);
    };
    if (profile.name != models::default_framework)
        say(fmt::format("framework: {} ({})", profile.name, profile.summary));
    if (has_tiles(machine)) {
        const Software& software = framework.passes ? *framework.passes : machine.software;
        report.document["software"] = software.name;
        const bool of_framework = framework.issue.other.time > Seconds{} && software.name == models::generic_software;
        if (!of_framework) say(fmt::format("software: {} ({})", software.name, software.summary));
    }
    report.document["warnings"] = Json::array();
    for (const std::string& why : predict::machine_warnings(machine)) {
        report.document["warnings"].push_back(why);
        say(fmt::format("warning: {}: {}", machine.origin, why));
    }
}

void add_network_notes(Report& report, const Network& network, const Schedule& schedule) {
    Json& notes = report.document["notes"] = Json::array();
    for (const std::string& note : network.notes) notes.push_back(note);
    for (const std::string& note : schedule::notes_of_plan(network, schedule)) notes.push_back(note);
    for (const std::string& warning : schedule::guess_warnings(network)) report.document["warnings"].push_back(warning);
}

void add_condition_notes(Report& report, const predict::Prediction& prediction, const Common& common) {
    std::vector<std::string> notes = predict::recompute_notes(prediction.setup);
    for (std::string& each : predict::attention_notes(prediction.setup)) notes.push_back(std::move(each));
    for (std::string& each : predict::condition_notes(prediction.setup)) notes.push_back(std::move(each));
    for (std::string& each : predict::sums_notes(prediction.points)) notes.push_back(std::move(each));
    for (std::string& each : predict::staging_notes(prediction.points)) notes.push_back(std::move(each));
    for (const std::string& note : notes) {
        report.document["notes"].push_back(note);
        talk(common, "note: " + note);
    }
}

void add_price_warnings(Report& report, const predict::Prediction& prediction, bool foreign, const Common& common) {
    std::vector<std::string> warnings = predict::faster_than_peak_warnings(prediction);
    for (std::string& each : predict::other_software_warnings(prediction, foreign)) warnings.push_back(std::move(each));
    for (const std::string& text : warnings) {
        report.document["warnings"].push_back(text);
        talk(common, "warning: " + text);
    }
}

void add_explanation(Report& report, const predict::Prediction& prediction) {
    Json& rows = report.document["explanation"] = Json::array();
    for (const predict::Explained& part : predict::explained(prediction)) {
        rows.push_back(report::json_of(part));
    }
    report.tables.push_back({"explanation",
                             fmt::format("where the step of {} devices comes from", devices_of(prediction)),
                             {{"what", "what"},
                              {"steps", "steps", Show::count},
                              {"total_s", "time", Show::seconds},
                              {"share", "of step", Show::percent},
                              {"error", "error", Show::percent},
                              {"basis", "price"},
                              {"source", "source"}}});
    add_band(report, prediction);
    add_bounds(report, prediction.points.back());
}

void add_memory(Report& report, const predict::Prediction& prediction) {
    Table table{"memory",
                fmt::format("memory of a device, of {} devices, at its fullest moment", devices_of(prediction)),
                {{"class", "class"}, {"kind", "kind"}, {"bytes", "bytes", Show::bytes}}};
    report.document["memory"] = Json::array();
    const std::vector<predict::LanguageMemory>& stages = prediction.setup.language_memory;
    if (!stages.empty()) {
        table.title += ", as Megatron-Core allocates it (docs/language_models.md)";
    } else if (prediction.setup.framework.megatron_memory) {
        table.title +=
            ", as the schedule counts: the framework's own account knows no such network, plan, precision or optimizer "
            "(docs/language_models.md)";
    }
    for (std::size_t stage = 0; stage < stages.size(); ++stage) {
        for (const schedule::MemoryRow& row : predict::rows(stages[stage])) {
            report.document["memory"].push_back(
                {{"class", fmt::format("stage {}", stage)}, {"kind", row.kind}, {"bytes", row.bytes.value}});
        }
    }
    for (const schedule::NamedUse& each : schedule::memory_uses(prediction.setup.schedule)) {
        if (!stages.empty()) break;
        for (const schedule::MemoryRow& row : schedule::rows(each.use)) {
            report.document["memory"].push_back({{"class", each.name}, {"kind", row.kind}, {"bytes", row.bytes.value}});
        }
    }
    report.tables.push_back(table);
}

void add_links(Report& report, const predict::Prediction& prediction) {
    Table table{"links",
                fmt::format("links of {} devices that carried something", devices_of(prediction)),
                {{"kind", "links"},
                 {"links", "number", Show::count},
                 {"capacity_bytes_per_s", "each a second", Show::bytes},
                 {"bytes", "bytes", Show::bytes},
                 {"most_bytes", "busiest", Show::bytes},
                 {"utilisation", "used", Show::percent},
                 {"most_utilisation", "busiest used", Show::percent}}};
    report.document["links"] = report.document["busiest_links"] = Json::array();
    const Seconds whole = length(prediction.timeline);
    for (const LinkUse& use : prediction.timeline.links) {
        LinkUse most = use;
        most.links = 1;
        most.bytes = use.most;
        report.document[use.name == use.kind ? "links" : "busiest_links"].push_back(
            {{"name", use.name},
             {"kind", use.kind},
             {"links", use.links},
             {"capacity_bytes_per_s", use.capacity.value},
             {"bytes", use.bytes.value},
             {"most_bytes", use.most.value},
             {"utilisation", utilisation(use, whole)},
             {"most_utilisation", utilisation(most, whole)}});
    }
    report.tables.push_back(table);
}

}  // namespace rehearse::cli
