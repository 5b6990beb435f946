// SPDX-License-Identifier: Apache-2.0
// What parameter servers keep of the weights, on devices of their own or beside ranks.
#pragma once

#include "core/schedule.hpp"
#include "schedule/memory.hpp"

namespace rehearse::schedule {

/// Returns what the fullest server holds: its shard of the weights (or of their average) and the optimizer's numbers of
/// it, in the type of updates; the weights of the shards that it follows (copies=N); and, as nobody waits for others, a
/// buffer for each rank that trades with it, of that rank's largest bucket. Nothing without servers.
MemoryUse server_memory(const Schedule& schedule);

}  // namespace rehearse::schedule
