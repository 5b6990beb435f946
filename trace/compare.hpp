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
    double error = 0;             // (predicted - measured) / measured
};

struct Comparison {
    std::vector<Row> steps;   // by Step::name, in the order of the measured timeline
    std::vector<Row> layers;  // all passes of a layer together
    std::vector<Row> passes;
    Row whole;                // the whole training step
    std::vector<std::string> only_predicted, only_measured;  // steps without a partner
};

/// InputError when not one step matches.
Comparison compare(const Timeline& predicted, const Timeline& measured);

}  // namespace rehearse::trace
