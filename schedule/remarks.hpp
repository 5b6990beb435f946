// SPDX-License-Identifier: Apache-2.0
// What a reader must know beside the figures of a network and its schedule, in sentences.
#pragma once

#include <string>
#include <vector>

#include "core/network.hpp"
#include "core/schedule.hpp"

namespace rehearse::schedule {

/// Warns of operators that are unknown, whose time is a guess; empty for a network without them.
std::vector<std::string> guess_warnings(const Network& network);

/// Returns what a schedule adds to the notes of its network: layers that its plan leaves whole.
std::vector<std::string> notes_of_plan(const Network& network, const Schedule& schedule);

}  // namespace rehearse::schedule
