// SPDX-License-Identifier: Apache-2.0
// Two timelines of the same schedule, matched step by step.
#pragma once

#include <string>
#include <vector>

#include "core/timeline.hpp"

namespace rehearse::trace {

struct Row {
    std::string name;
    Seconds predicted, measured;  // mean over matched ranks of the median over iterations
    double error = 0;             // (predicted - measured) / measured; infinite when only the measured time is zero
};

/// A step's time on a rank is the sum of its events in one iteration (several micro-batches). The first iteration is
/// left out when there are three or more. Ranks match by number; where the predicted timeline has only representatives
/// of the job's ranks, each step is held against the mean of all measured ranks that do it.
struct Comparison {
    std::vector<Row> steps;                                  // by Step::name, in the order of the measured timeline
    std::vector<Row> layers;                                 // all passes of a layer together: sums of rows of `steps`
    std::vector<Row> passes;                                 // likewise
    Row whole;                                               // the whole training step, from summarize
    std::vector<std::string> only_predicted, only_measured;  // steps without a partner
};

/// InputError when not one step matches.
Comparison compare(const Timeline& predicted, const Timeline& measured);

}  // namespace rehearse::trace
