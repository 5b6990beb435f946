// SPDX-License-Identifier: Apache-2.0
// What a reader must know beside the figures of a prediction, in sentences that every face of the program says.
#pragma once

#include <string>
#include <vector>

#include "core/machine.hpp"
#include "core/network.hpp"
#include "core/schedule.hpp"
#include "predict/prediction.hpp"

namespace rehearse::predict {

using Sentences = std::vector<std::string>;

/// Warns of what makes the machine's prices as a whole untrustworthy.
Sentences machine_warnings(const Machine& machine);

/// Warns of kernels that were measured to be faster than the machine's peaks allow.
Sentences faster_than_peak_warnings(const Prediction& prediction);

/// Warns of computation or messages that are priced as of other software than a framework's; `foreign`: the framework
/// is not this program.
Sentences other_software_warnings(const Prediction& prediction, bool foreign);

/// Notes what conditions leave out: samples that a step does not wait for, slow nodes and weak links where the job is
/// not.
Sentences condition_notes(const Setup& setup);

/// Notes where the plan computes blocks again for nothing: the network has none, or no memory is saved.
Sentences recompute_notes(const Setup& setup);

/// Notes that attention's probabilities lie in memory because the software has them there, and not the plan.
Sentences attention_notes(const Setup& setup);

/// Notes on how many devices gradients are summed by rings, as the machine's own library cannot be asked.
Sentences sums_notes(const std::vector<Point>& points);

/// Notes on how many devices the nodes keep too few samples to hold the data set between them.
Sentences staging_notes(const std::vector<Point>& points);

/// Warns of pilots outside the band of what is predicted without them, with what would explain them, and of a pilot
/// that no scale of computation meets.
Sentences pilot_warnings(const Prediction& prediction);

/// Warns of the numbers of devices that the job does not fit on, with what the fullest device would take.
Sentences memory_warnings(const std::vector<Point>& points);

/// Of steps with parameter servers, those that are no steady state yet.
Sentences unsettled_warnings(const std::vector<Point>& points);

struct Remarks {
    Sentences notes, warnings;
};
/// Returns all of the above beside the remarks of the network and the plan (schedule/remarks.hpp), for a prediction of
/// `network` on `machine`.
Remarks remarks_of(const Network& network, const Machine& machine, const Prediction& prediction, bool foreign);

}  // namespace rehearse::predict
