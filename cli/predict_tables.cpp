// SPDX-License-Identifier: Apache-2.0
#include "cli/predict_tables.hpp"

#include <fmt/format.h>

#include <utility>

#include "cli/explain.hpp"
#include "schedule/memory.hpp"

namespace rehearse::cli {

namespace {

using Json = nlohmann::ordered_json;

std::int64_t devices_of(const Predicted& last) { return last.point["devices"].get<std::int64_t>(); }

// What the step was held against, and did not beat.
void add_bounds(Report& report, const Json& point) {
    const double step = point["step_s"].get<double>();
    report.document["bounds"] = Json::array();
    for (const auto& [what, key] :
         {std::pair{"operations at peak rate, or bytes at memory bandwidth", "least_compute_s"},
          std::pair{"bytes over the links of a device, or the NICs of its nodes", "least_wire_s"}}) {
        const double least = point[key].get<double>();
        report.document["bounds"].push_back({{"what", what}, {"least_s", least}, {"share", least / step}});
    }
    report.tables.push_back(
        {"bounds",
         "its certificate: nothing takes less than the machine's figures allow",
         {{"what", "what is needed"}, {"least_s", "least", Show::seconds}, {"share", "of step", Show::percent}}});
}

}  // namespace

void add_explanation(Report& report, const Predicted& last, const Machine& machine) {
    report.document["explanation"] = explanation(last.schedule, machine, last.timeline);
    report.tables.push_back({"explanation",
                             fmt::format("where the step of {} devices comes from", devices_of(last)),
                             {{"what", "what"},
                              {"steps", "steps", Show::count},
                              {"total_s", "time", Show::seconds},
                              {"share", "of step", Show::percent},
                              {"error", "error", Show::percent},
                              {"source", "source"}}});
    add_bounds(report, last.point);
}

void add_memory(Report& report, const Predicted& last) {
    Table table{"memory",
                fmt::format("memory of a device, of {} devices, at its fullest moment", devices_of(last)),
                {{"class", "class"}, {"kind", "kind"}, {"bytes", "bytes", Show::bytes}}};
    report.document["memory"] = Json::array();
    for (const RankClass& rank_class : last.schedule.classes) {
        for (const schedule::MemoryRow& row : schedule::rows(schedule::memory_use(last.schedule, rank_class))) {
            report.document["memory"].push_back(
                {{"class", rank_class.name}, {"kind", row.kind}, {"bytes", row.bytes.value}});
        }
    }
    report.tables.push_back(table);
}

void add_links(Report& report, const Predicted& last) {
    Table table{"links",
                fmt::format("links of {} devices that carried something", devices_of(last)),
                {{"kind", "links"},
                 {"links", "number", Show::count},
                 {"capacity_bytes_per_s", "each a second", Show::bytes},
                 {"bytes", "bytes", Show::bytes},
                 {"most_bytes", "busiest", Show::bytes},
                 {"utilisation", "used", Show::percent},
                 {"most_utilisation", "busiest used", Show::percent}}};
    report.document["links"] = report.document["busiest_links"] = Json::array();
    const Seconds whole = length(last.timeline);
    for (const LinkUse& use : last.timeline.links) {
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
