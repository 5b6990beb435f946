// SPDX-License-Identifier: Apache-2.0
// What a thread does between two looks for a message. Where each rank is bound to a core, its communication thread
// shares it with its compute thread, and perhaps with other ranks. Measured with ResNet-32, batch 32, 2 ranks on 2
// cores, 14 buckets of 100 kB, while other processes wanted the cores too. Beside compute, looking without a pause took
// 15 to 40 % more CPU time than naps of 50 us. When compute waits as well, sched_yield left 100 ms exposed of a sum
// that naps of 1 us finish in 3 ms: who sleeps is scheduled first when it wakes, who yields comes last.
//
// A nap is not free: in a virtual machine its timer and two switches of threads take some 20 us of the core. Beside a
// thread that computes on the same core, looks after naps of 1 us took 50 % of it, of 50 us 25 %, of 200 us 11 %, of 1
// ms 5 %. So naps grow with what has been waited: late by a sixteenth of it at most.
#pragma once

#include <chrono>

#include "kernels/comm/communicator.hpp"

namespace rehearse::kernels {

/// For a thread that has nothing else to do, from its first call on: twenty looks in a row, then a nap of 1 us, so that
/// the sender gets the core where both share it; after a longer wait naps of a sixteenth of it, 200 us at most.
Idle attentive();

/// For a thread beside one that computes: a nap after each look, as long as nap_beside says.
Idle considerate();

/// How long not to look for a message beside computation, having waited for it so long: an eighth of that, 50 us at
/// least, 400 us at most.
std::chrono::nanoseconds nap_beside(std::chrono::nanoseconds waited);

}  // namespace rehearse::kernels
