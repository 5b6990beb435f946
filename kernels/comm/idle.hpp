// SPDX-License-Identifier: Apache-2.0
// What a thread does between two looks for a message. Where each rank is bound to a core, its communication thread
// shares it with its compute thread. Measured with ResNet-32, batch 32, 2 ranks on 2 cores, 14 buckets of 100 kB, while
// other processes wanted the cores too. Beside compute, looking without a pause took 15 to 40 % more CPU time than naps
// of 50 us. When compute waits as well, sched_yield left 100 ms exposed of a sum that naps of 1 us finish in 3 ms: who
// sleeps is scheduled first when it wakes, who yields comes last.
#pragma once

#include "kernels/comm/communicator.hpp"

namespace rehearse::kernels {

/// For a thread that has nothing else to do: twenty looks in a row, then a nap of some us, so that the sender gets the
/// core where both share it.
Idle attentive();

/// For a thread beside one that computes: a nap of 50 us after each look.
Idle considerate();

}  // namespace rehearse::kernels
