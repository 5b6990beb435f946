// SPDX-License-Identifier: Apache-2.0
// What a whole training by a plan asks of a computing centre.
#pragma once

#include <cstdint>

#include "core/units.hpp"
#include "predict/training.hpp"

namespace rehearse::search {

/// Steps of a training with so many samples in each, the last one perhaps not full; where its data set is not known,
/// the 100 that show how fast it is.
double steps_of(const predict::Training& training, std::int64_t global_batch);

/// Wall time to ask for: a tenth more than the steps take where each is as long as the upper end of its band, which
/// may not be known (0).
Seconds wall_limit(double steps, Seconds step, Seconds high);

/// Energy of node-hours on nodes that take so many watts all the time.
double kilowatt_hours(double node_hours, double watts_a_node);

}  // namespace rehearse::search
