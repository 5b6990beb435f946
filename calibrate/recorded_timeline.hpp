// SPDX-License-Identifier: Apache-2.0
// A recording in the words of a schedule: what its steps took, and what of the recording is none of them.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "calibrate/recorded_match.hpp"
#include "core/recording.hpp"
#include "core/schedule.hpp"
#include "core/timeline.hpp"

namespace rehearse::calibrate {

/// Calls of one name that no layer was found for; seconds of a step.
struct UnmatchedCalls {
    std::string name, pass;
    std::int64_t calls = 0;
    double seconds = 0, idle = 0;  // busy, and idle at them
};

/// A layer's times; seconds of a step, medians.
struct LayerTimes {
    std::string layer, calls;  // of the forward pass, "conv2d, relu_"
    double forward = 0, backward = 0;
};

/// Where a step's time goes; medians over steps, seconds.
struct RecordedShares {
    double step = 0;        // from its beginning to the next one's
    double layers = 0;      // busy with calls that layers were found for
    double update = 0;      // the optimizer, and gradients set to zero
    double unmatched = 0;   // busy with other calls
    double gaps = 0;        // idle, no collective going on: launches, the program itself
    double beside = 0;      // ... of these at calls that no layer was found for, and at the ends of the step
    double exposed = 0;     // a collective goes on and nothing is computed
    double loader = 0;      // waiting for samples
    double collective = 0;  // a collective goes on; beside computation but for `exposed`
};

struct MatchedRecording {
    Timeline timeline;  // named by the schedule's steps; calls without one by their own names
    RecordedShares shares;
    std::vector<LayerTimes> layers;
    std::vector<UnmatchedCalls> unmatched;  // the longest first
    std::vector<std::string> missing;       // layers without calls
    std::int64_t steps = 0, unlike = 0;
    int passes = 1;  // times that a step goes through the network: micro-batches whose gradients it accumulates
    bool by_shape = false;
    /// By how much computing differs from one step to the next of a rank, one standard deviation relative to a step:
    /// from the median difference of neighbours, which neither one step that was held up enters nor a slow drift that
    /// all ranks of a host share. 0 of fewer than `fewest_for_spread` steps.
    double spread = 0;
    static constexpr std::int64_t fewest_for_spread = 4;
    /// What a step takes without collectives and loading: what prices add up to.
    double computing() const { return shares.step - shares.exposed - shares.loader; }
};

/// Steps of a schedule that a recording has once for several of them: collectives by their order, the optimizer's step
/// by the elements of their buckets.
struct NamedSteps {
    std::vector<std::string> collectives;
    std::vector<std::pair<std::string, double>> updates;  // with their weights
};
NamedSteps named_steps(const Schedule& schedule);
NamedSteps named_steps(const Timeline& timeline);

/// `schedule`: of data parallelism, at the batch that was recorded. The backward pass of a layer, one node of
/// autograd's, is both of its gradients': split by what kernels are called, by the shapes of its products, else in
/// halves. InputError as steps_of and match have it.
MatchedRecording matched(std::span<const Recording> recordings, const Schedule& schedule, const NamedSteps& named);

}  // namespace rehearse::calibrate
