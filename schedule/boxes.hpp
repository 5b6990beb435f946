// SPDX-License-Identifier: Apache-2.0
// A schedule as boxes on lanes: what each rank class computes in each tick, if messages took no time.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/schedule.hpp"

namespace rehearse::schedule {

/// F forward, R forward again, B backward; W the gradients of weights alone, where they are put off until after B;
/// U the update.
enum class BoxKind { forward, again, backward, weights, update };
char letter(BoxKind kind);

/// One micro-batch through one chunk: steps of the compute stream that lie together.
struct ComputeBox {
    BoxKind kind = BoxKind::forward;
    int micro_batch = 0;
    int chunk = 0;
    std::int64_t start = 0, length = 1;  // in ticks
};

/// How long each kind of box is. A backward pass does twice the operations of a forward one; with several chunks a
/// stage, each is one tick of its own.
struct Ticks {
    std::int64_t forward = 1, again = 1, backward = 2, weights = 1, update = 0;
};

struct Lane {
    std::string name;  // of the rank class
    std::vector<ComputeBox> boxes;
};

struct BoxChart {
    std::vector<Lane> lanes;
    int chunks = 1;
    std::int64_t end = 0;  // of the last box
};

/// From the steps themselves: a box begins when the one before it on its lane has ended, and all that its steps wait
/// for, on other lanes through Send and Recv. Boxes of no length are left out.
BoxChart boxes(const Schedule& schedule, const Ticks& ticks = {});

/// The share of [0, end) in which the lane computes nothing.
double idle_share(const BoxChart& chart, const Lane& lane);

}  // namespace rehearse::schedule
