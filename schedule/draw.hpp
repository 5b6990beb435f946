// SPDX-License-Identifier: Apache-2.0
// A schedule as text: what each stream does, in its order.
#pragma once

#include <string>

#include "core/schedule.hpp"

namespace rehearse::schedule {

/// One line a stream that has steps; "<" names the steps of other streams that a step waits for:
///   compute: a:forward loss:forward loss:backward_data a:backward_weights bucket0:update<bucket0:allreduce
///   communication: bucket0:allreduce<a:backward_weights
std::string draw(const RankClass& rank_class);
/// All classes, each under its name when there is more than one.
std::string draw(const Schedule& schedule);

}  // namespace rehearse::schedule
