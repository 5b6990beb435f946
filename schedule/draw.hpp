// SPDX-License-Identifier: Apache-2.0
// A schedule as text: what each stream does, in its order.
#pragma once

#include <string>

#include "core/schedule.hpp"
#include "schedule/boxes.hpp"

namespace rehearse::schedule {

/// One line a stream that has steps; "<" names the steps of other streams that a step waits for:
///   compute: a:forward loss:forward loss:backward_data a:backward_weights bucket0:update<bucket0:allreduce
///   communication: bucket0:allreduce<a:backward_weights
std::string draw(const RankClass& rank_class);
/// All classes, each under its name when there is more than one.
std::string draw(const Schedule& schedule);

/// One line a lane; a box begins with its letter and micro-batch (and its chunk as a small letter), '-' is the rest of
/// it, '.' a tick without work:
///   stage0 F0 F1 .  .  B0--- .  B1---
///   stage1 .  F0 B0--- F1 B1--- .  .
std::string draw(const BoxChart& chart);

/// What a box is called in pictures: "F0", with chunks "F0a".
std::string label(const ComputeBox& box, int chunks);

}  // namespace rehearse::schedule
