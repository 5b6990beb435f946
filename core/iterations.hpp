// SPDX-License-Identifier: Apache-2.0
// Which training steps of a timeline its figures are of. Tables, JSON and pictures show one statistic: the median over
// the iterations, of which the first (a warm-up) is left out when there are three or more; of an even number it is the
// lower one of the two in the middle. For the step as a whole that is one iteration, from its first event to its last;
// where ranks begin it before others end the one before, from the end of that one. Workers of parameter servers do
// not wait for each other, so that no iteration is one of all: there it is one of the first worker while all of them
// train, and the step as a whole is the mean of all workers (summarize).
#pragma once

#include "core/timeline.hpp"

namespace rehearse {

struct Iterations {
    int count = 0;             // that the median is over
    bool left_out = false;     // the first, a warm-up
    int middle = 0;            // the number of the iteration whose length is the median, as summarize takes it
    Seconds start, end;        // of that iteration
    std::int64_t workers = 0;  // of parameter servers: those that the step is the mean of
};
Iterations iterations(const Timeline& timeline);

/// "1 iteration", "median of 9 iterations (the first, a warm-up, left out)"; of workers of parameter servers followed
/// by
/// ", its step the mean of 8 workers, which do not wait for each other".
std::string to_string(const Iterations& iterations);

}  // namespace rehearse
