// SPDX-License-Identifier: Apache-2.0
// What predict says of its largest point beside the table of all points.
#pragma once

#include <nlohmann/json.hpp>

#include "cli/report.hpp"
#include "core/machine.hpp"
#include "core/schedule.hpp"
#include "core/timeline.hpp"

namespace rehearse::cli {

struct Predicted {
    nlohmann::ordered_json point;
    Schedule schedule;
    Timeline timeline;
};

/// "explanation": what takes the step's time, at which price, from where; "bounds": what its certificate held it
/// against.
void add_explanation(Report& report, const Predicted& last, const Machine& machine);
/// "memory": what each rank class holds at its fullest moment.
void add_memory(Report& report, const Predicted& last);
/// "links": what kinds of links carried; in JSON single ones too, "busiest_links".
void add_links(Report& report, const Predicted& last);

}  // namespace rehearse::cli
