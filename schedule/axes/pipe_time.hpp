// SPDX-License-Identifier: Apache-2.0
// How long a pipeline takes by what its stages compute and hand on: what cuts are compared by.
#pragma once

#include <span>

#include "schedule/axes/orders.hpp"

namespace rehearse::schedule {

/// Of one micro-batch in one piece; all in seconds, or all in operations.
struct PieceTimes {
    double forward = 0, backward = 0;  // computed
    double handed = 0, returned = 0;   // what goes on to the next piece, and the gradients that come back from there
};

/// From the first forward pass to the last backward one. Pieces are numbered as in PipelineShape. A stage computes one
/// item after the other; messages go beside that, one after the other each way, and one is taken in as soon as the item
/// before the last has ended (schedule/layer_steps.cpp).
double pipeline_time(const PipelineStrategy& strategy, const PipelineShape& shape, std::span<const PieceTimes> pieces);

}  // namespace rehearse::schedule
