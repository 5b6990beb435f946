// SPDX-License-Identifier: Apache-2.0
// Parameter-server shards at work: whoever comes first is served first, and it is written down who that was.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "core/schedule.hpp"
#include "kernels/comm/communicator.hpp"
#include "run/methods/attendance.hpp"
#include "run/methods/workers.hpp"
#include "run/train.hpp"

namespace rehearse::run {

/// A push as its server took it; of a worker that is several ranks, with pieces of the bucket or all of it each, those
/// of all of them.
struct Served {
    RankIndex rank{0};  // the first of them
    int step = 0, bucket = 0;
    int stage = 0;  // of the worker's pipeline
    /// When the server saw that it had come, had updated by it, and had sent the answer; in seconds of rank 0's clock.
    double came = 0, updated = 0, answered = 0;
};
/// The pushes that each server took, in the order of its updates.
using ServerLogs = std::vector<std::vector<Served>>;

/// A communicator for each pair of pushing rank (its rank 0) and server (1) that this rank is one of.
using ServerLinks = std::map<std::pair<RankIndex, std::int64_t>, kernels::Communicator>;  // rank, server
/// Collective over the whole job, ranks and servers.
ServerLinks link_servers(const kernels::Communicator& job, const Schedule& schedule);

/// A push and its pull, as the worker's rank sends and receives them.
kernels::RankProgram push_pull_rounds(const PushPull& push_pull);

/// Updates by what every pushing rank sends in all steps; to be called by each server of the job. Returns in which
/// order.
std::vector<Served> serve(const kernels::Communicator& job, const Schedule& schedule, int server,
                          const Options& options, ServerLinks& links);

/// The same where workers may die, or are cut when a quorum is through (options.patience); who is left at the end.
std::pair<std::vector<Served>, Attended> serve_who_is_there(const kernels::Communicator& job, const Schedule& schedule,
                                                            int server, const Options& options, ServerLinks& links);

/// Collective over the job, or what is left of it: everybody gets what the servers, its last ranks, have written down;
/// `own` is a server's.
ServerLogs share_logs(const kernels::Communicator& job, const Schedule& schedule, const std::vector<Served>& own);

/// Returns, by staleness, how many updates were by gradients at weights that so many other updates of the bucket came
/// after.
std::vector<std::int64_t> staleness(const ServerLogs& logs);

}  // namespace rehearse::run
