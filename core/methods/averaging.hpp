// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace rehearse {

/// Ranks along data train models of their own, and average them.
struct Averaging {
    int period = 0;       // updates between two averages; 0: all ranks train one model
    double elastic = 0;   // share of a model's difference from the average one that both give up; 0: it is replaced
    double momentum = 0;  // of the average model (synchronous model averaging)
    int learners = 1;     // models that a rank trains at the same time, micro-batch m the m-th (Crossbow)
    bool operator==(const Averaging&) const = default;
};

}  // namespace rehearse
