// SPDX-License-Identifier: Apache-2.0
#include "report/document/application.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/error.hpp"
#include "report/document/numbers.hpp"
#include "report/document/sections.hpp"

namespace rehearse::report {

std::string basis_word(const predict::Point& point) {
    if (!point.memory.fits) return "does not fit";
    if (point.measured) return "measured";
    return point.anchor ? "anchored" : "predicted";
}

Seconds step_of(const predict::Point& point) { return point.measured.value_or(point.figures.time.step); }

double throughput_of(const predict::Point& point) {
    return static_cast<double>(point.figures.global_batch) / step_of(point).value;
}

std::vector<predict::Point> feasible(const ScalingStudy& study) {
    std::vector<predict::Point> points;
    for (const predict::Point& point : study.points)
        if (point.memory.fits) points.push_back(point);
    return points;
}

void check(const ScalingStudy& study) {
    if (!feasible(study).empty()) return;
    const auto least = std::ranges::min_element(study.points, {}, [](const auto& point) { return point.memory.peak; });
    throw InfeasibleError(fmt::format(
        "{} scaling: no size has enough memory for a batch of {}: on {} nodes a device would take {} of its {}; leave "
        "this study out, or give it a smaller batch or more nodes",
        study.strong ? "strong" : "weak", study.batch, least->nodes, to_string(least->memory.peak),
        to_string(least->memory.capacity)));
}

std::size_t knee(const std::vector<predict::Point>& points) {
    std::size_t last = 0;
    for (std::size_t i = 1; i < points.size(); ++i) {
        const double gain = throughput_of(points[i]) / throughput_of(points[i - 1]) - 1;
        const double paid =
            static_cast<double>(points[i].figures.devices) / static_cast<double>(points[i - 1].figures.devices) - 1;
        if (gain < paid / 2) break;
        last = i;
    }
    return last;
}

double efficiency_of(const predict::Point& point, const predict::Point& smallest) {
    return throughput_of(point) / static_cast<double>(point.figures.devices) /
           (throughput_of(smallest) / static_cast<double>(smallest.figures.devices));
}

Choice choice_of(const Application& application) {
    Choice choice;
    const auto dearest = std::ranges::max_element(application.phases, {}, [](const JobPhase& phase) {
        return static_cast<double>(phase.runs * phase.nodes) * phase.wall.value;
    });
    const bool said = dearest != application.phases.end();
    const auto study = std::ranges::find_if(
        application.studies, [&](const ScalingStudy& each) { return !said || each.strong == dearest->strong; });
    choice.study = study == application.studies.end() ? &application.studies.front() : &*study;
    choice.points = feasible(*choice.study);
    choice.knee = knee(choice.points);
    for (std::size_t i = 0; i < choice.points.size(); ++i) {
        const bool above = efficiency_of(choice.points[i], choice.points.front()) >= application.floor;
        if (above) choice.at_floor = i;
        if (said ? choice.points[i].nodes == dearest->nodes : above) choice.chosen = i;
    }
    if (said) choice.phase = &*dearest;
    return choice;
}

Document document_of(const Application& application) {
    require(!application.studies.empty(), "an application has a scaling study");
    for (const ScalingStudy& study : application.studies) check(study);
    const Choice choice = choice_of(application);
    const ApplicationMachine& machine = application.machine;
    Document document{application.title,
                      fmt::format("{}{}: {}", application.applicant.empty() ? "" : application.applicant + ". ",
                                  machine.name, machine.summary),
                      application.project,
                      {},
                      fmt::format("Made by Rehearse {} for {}; figures are predictions unless they are marked as "
                                  "measured.",
                                  application.version, machine.name)};
    document.sections.push_back(scaling_section(application));
    document.sections.push_back(chart_section(application));
    document.sections.push_back(jobs_section(application));
    document.sections.push_back(size_section(application, choice));
    document.sections.push_back(data_section(application, choice));
    document.sections.push_back(software_section(application, choice));
    document.sections.push_back(trust_section(application));
    for (const std::string& fault : faults(document)) require(false, fault.c_str());
    return document;
}

}  // namespace rehearse::report
