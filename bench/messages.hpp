// SPDX-License-Identifier: Apache-2.0
// Messages between the ranks of a host, sent as the rounds of an all-reduce send them.
#pragma once

#include "bench/rounds.hpp"
#include "bench/team.hpp"
#include "calibrate/samples.hpp"
#include "kernels/comm/communicator.hpp"

namespace rehearse::bench {

/// `communicator` must outlive the team.
Team team_of(const kernels::Communicator& communicator);

/// One round of a ring, again and again, of 8 B to 16 MiB: every rank sends to the next and receives from the one
/// before at the same time, through the Communicator that training uses (a ping-pong would leave one core idle, as no
/// training step does); and the rate of adding what came in. Collective; at least two ranks.
calibrate::Messages measure_messages(kernels::Communicator& communicator, const Rounds& rounds);

}  // namespace rehearse::bench
