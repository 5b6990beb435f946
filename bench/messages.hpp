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

/// What a rank does in one round of a ring over all: a message of `count` floats out, and one in that is put in its
/// place or added there.
kernels::RankProgram ring_round(const kernels::Communicator& communicator, std::int64_t count, bool adds = false);

/// One round of a ring, again and again, of 8 B to 16 MiB: every rank sends to the next and receives from the one
/// before at the same time, through the Communicator that training uses (a ping-pong would leave one core idle, as no
/// training step does); what adding takes beyond that; and what overlap costs. Collective; at least two ranks.
calibrate::Messages measure_messages(kernels::Communicator& communicator, const Rounds& rounds);

}  // namespace rehearse::bench
