// SPDX-License-Identifier: Apache-2.0
// Collectives that were measured, predicted: what calibrate fits messages by.
#pragma once

#include <string>

#include "calibrate/message_fit.hpp"

namespace rehearse::cli {

/// Predicts a measured collective on a machine by the algorithms that plans have by default; broadcasts, reductions,
/// gathers and scatters by the messages that they count as (calibrate/collective_times.hpp). InputError in a build
/// without the simulator.
Seconds predicted_time(const Machine& machine, const calibrate::CollectiveRow& row);

/// Names the algorithm by which predicted_time predicts `row`: "hierarchical(ring,halving)", or "messages".
std::string algorithm_of(const Machine& machine, const calibrate::CollectiveRow& row);

}  // namespace rehearse::cli
