// SPDX-License-Identifier: Apache-2.0
// What a rank waits for while it computes nothing.
#pragma once

#include <cstdint>
#include <span>

#include "core/schedule.hpp"
#include "core/timeline.hpp"

namespace rehearse {

struct Waits {
    Seconds communication, bubble, io, rest;
};

/// What `rank` waited for between `start` and `end`, by going back from each of its computations: to the step that
/// ended last of those that it had to wait for, to what that one had waited for before it began, and so on, on
/// whichever rank, as far as this rank computed nothing. A moment in which the chain's step is a message or a
/// collective counts as communication, one in which another stage of the pipeline computes as bubble, one in which
/// samples are read as io. One in which another rank of the same stage computes is communication: ranks are late for
/// their collective. What no step explains is the rest (of measured steps: until a thread has woken up).
///
/// `events` are those of one iteration, rank after rank; of ranks without any, others of their class stand for them.
Waits waits(const Schedule& schedule, std::span<const Event> events, RankIndex rank, Seconds start, Seconds end);

}  // namespace rehearse
