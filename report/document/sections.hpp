// SPDX-License-Identifier: Apache-2.0
// The sections of an application, each made by its own function. Only the files beside this one include it.
#pragma once

#include <vector>

#include "report/document/application.hpp"

namespace rehearse::report {

/// The measured step where there is one.
Seconds step_of(const predict::Point& point);
/// Samples a second.
double throughput_of(const predict::Point& point);
/// Throughput a device, relative to the smallest size's.
double efficiency_of(const predict::Point& point, const predict::Point& smallest);
/// Points that have enough memory.
std::vector<predict::Point> feasible(const ScalingStudy& study);

/// The size that most of the time is asked for, among its neighbours.
struct Choice {
    const ScalingStudy* study = nullptr;
    const JobPhase* phase = nullptr;  // null: no phase says a size
    std::vector<predict::Point> points;
    std::size_t chosen = 0, knee = 0, at_floor = 0;  // at_floor: the largest at or above the floor
    const predict::Point& point() const { return points[chosen]; }
};
Choice choice_of(const Application& application);

Section scaling_section(const Application& application);
Section chart_section(const Application& application);
Section jobs_section(const Application& application);
Section size_section(const Application& application, const Choice& choice);
Section data_section(const Application& application, const Choice& choice);
Section software_section(const Application& application, const Choice& choice);
Section trust_section(const Application& application);

}  // namespace rehearse::report
