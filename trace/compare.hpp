// SPDX-License-Identifier: Apache-2.0
// Two timelines of the same schedule, matched step by step.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/iterations.hpp"

namespace rehearse::trace {

/// The statistic of every figure here, as tables, JSON and the window name it.
inline constexpr const char* statistic =
    "median over iterations (of an even number the lower middle one), without the first of three or more; the step of "
    "parameter servers' workers is their mean after the first quarter";

struct Row {
    std::string name;
    Seconds predicted, measured;  // mean over matched ranks of that median
    double error = 0;             // (predicted - measured) / measured; infinite when only the measured time is zero
};

/// A step's time on a rank is the sum of its events in one iteration (several micro-batches). Ranks match by number;
/// where the predicted timeline has only representatives of the job's ranks, each step is held against the mean of all
/// measured ranks that do it.
struct Comparison {
    std::vector<Row> steps;                                  // by Step::name, in the order of the measured timeline
    std::vector<Row> layers;                                 // all passes of a layer together: sums of rows of `steps`
    std::vector<Row> passes;                                 // likewise
    Row whole;                                               // the training step in the middle, from summarize
    std::vector<std::string> only_predicted, only_measured;  // steps without a partner
    Iterations predicted, measured;
};
/// "predicted: 1 iteration; measured: median of 9 iterations (the first, a warm-up, left out)".
std::string text_of_iterations(const Comparison& comparison);

/// Where the two cut pipelines into stages, if not after the same layers: "stages end after a in the prediction, after
/// b, c in the measured timeline". Nothing where no sent activation lacks a partner.
std::string text_of_cuts(const Comparison& comparison);

/// The network that a title names: "resnet50" of those that predictions and runs have, "resnet50 on summit, data=384,
/// predicted" and "resnet50, data=2, batch 32 a rank, measured". Nothing of another title, such as that of replayed
/// traces, which know no network and no plan: "replay of job.0.et on summit, predicted".
std::string_view network_of(const Timeline& timeline);

/// InputError when not one step matches, when their titles name different networks, or when every step of a prediction
/// does the same multiple of a measured one's operations (another batch; two predictions may have different ones).
Comparison compare(const Timeline& predicted, const Timeline& measured);

}  // namespace rehearse::trace
