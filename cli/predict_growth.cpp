// SPDX-License-Identifier: Apache-2.0
#include "cli/predict_growth.hpp"

#include "cli/json.hpp"

namespace rehearse::cli {

namespace {

/// A phase's figures at the i-th number of devices.
Json row_of(const PredictedPhase& each, std::size_t point) {
    const predict::Point& at = each.prediction.points[point];
    const double step = at.figures.time.step.value;
    return {{"devices", at.figures.devices}, {"from_step", each.phase.from},
            {"model", each.phase.model},     {"parameters", each.parameters},
            {"steps", each.steps},           {"step_s", step},
            {"time_s", each.steps * step},   {"memory_peak_bytes", at.memory.peak.value}};
}

}  // namespace

void add_growth(Report& report, const std::vector<PredictedPhase>& phases) {
    report.document["growth"] = Json::array();
    report.document["growth_totals"] = Json::array();
    int steps = 0;
    for (const PredictedPhase& each : phases) steps += each.steps;
    for (std::size_t point = 0; point < phases.back().prediction.points.size(); ++point) {
        double all = 0, low = 0, high = 0;
        for (const PredictedPhase& each : phases) {
            const predict::Point& at = each.prediction.points[point];
            report.document["growth"].push_back(row_of(each, point));
            all += each.steps * at.figures.time.step.value;
            low += each.steps * at.band.low.value;
            high += each.steps * at.band.high.value;
        }
        const predict::Point& last = phases.back().prediction.points[point];
        report.document["growth_totals"].push_back({{"devices", last.figures.devices},
                                                    {"steps", steps},
                                                    {"time_s", all},
                                                    {"time_low_s", low},
                                                    {"time_high_s", high},
                                                    {"last_alone_s", steps * last.figures.time.step.value}});
    }
    report.tables.push_back({"growth",
                             "networks",
                             {{"devices", "devices", Show::count},
                              {"from_step", "from step", Show::count},
                              {"model", "network"},
                              {"parameters", "parameters", Show::count},
                              {"steps", "steps", Show::count},
                              {"step_s", "step", Show::seconds},
                              {"time_s", "time", Show::seconds},
                              {"memory_peak_bytes", "memory", Show::bytes}}});
    report.tables.push_back({"growth_totals",
                             "the training",
                             {{"devices", "devices", Show::count},
                              {"steps", "steps", Show::count},
                              {"time_s", "time", Show::seconds},
                              {"time_low_s", "low", Show::seconds},
                              {"time_high_s", "high", Show::seconds},
                              {"last_alone_s", "last network alone", Show::seconds}}});
}

}  // namespace rehearse::cli
