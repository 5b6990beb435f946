// SPDX-License-Identifier: Apache-2.0
// What predict says of its largest point beside the table of all points.
#pragma once

#include "cli/report.hpp"
#include "models/frameworks.hpp"
#include "predict/job.hpp"
#include "predict/prediction.hpp"

namespace rehearse::cli {

/// What holds of all prices: the framework; "software", that devices with tiles are priced for, the framework's where
/// it names one, and untold where its own host takes the place of the generic one; "warnings", why the machine's prices
/// are not to be trusted. Below the tables in text.
void add_machine_notes(Report& report, const Machine& machine, const models::FrameworkProfile& profile,
                       const predict::Framework& framework);
/// "notes" of the network's import and of layers that the plan leaves whole, and in "warnings" how much of the network
/// is guessed. Called after add_machine_notes; stderr has been told of all by then.
void add_network_notes(Report& report, const Network& network, const Schedule& schedule);
/// Adds what the conditions leave out, also to stderr. Called after add_network_notes.
void add_condition_notes(Report& report, const predict::Prediction& prediction, const Common& common);
/// In "warnings" and on stderr: kernels that were measured to be faster than the machine's peaks allow, and computation
/// or messages that are priced as of other software than a framework's; `foreign`: the framework is not this program.
void add_price_warnings(Report& report, const predict::Prediction& prediction, bool foreign, const Common& common);
/// "explanation": what takes the step's time, at which price, from where; "bounds": what its certificate held it
/// against.
void add_explanation(Report& report, const predict::Prediction& prediction);
/// "memory": what each rank class holds at its fullest moment.
void add_memory(Report& report, const predict::Prediction& prediction);
/// "links": what kinds of links carried; in JSON single ones too, "busiest_links".
void add_links(Report& report, const predict::Prediction& prediction);

}  // namespace rehearse::cli
