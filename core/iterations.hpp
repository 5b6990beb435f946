// SPDX-License-Identifier: Apache-2.0
// Which training steps of a timeline its figures are of. Tables, JSON and pictures show one statistic: the median over
// the iterations, of which the first (a warm-up) is left out when there are three or more; of an even number it is the
// lower one of the two in the middle. For the step as a whole that is one iteration.
#pragma once

#include "core/timeline.hpp"

namespace rehearse {

struct Iterations {
    int count = 0;          // that the median is over
    bool left_out = false;  // the first, a warm-up
    int middle = 0;         // the number of the iteration whose length is the median, as summarize takes it
    Seconds start, end;     // of that iteration: from the first start to the last end of its events
};
Iterations iterations(const Timeline& timeline);

/// "1 iteration", "median of 9 iterations (the first, a warm-up, left out)".
std::string to_string(const Iterations& iterations);

}  // namespace rehearse
