// SPDX-License-Identifier: Apache-2.0
// Parameter servers at work: whoever comes first is served first, and it is written down who that was.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "core/schedule.hpp"
#include "kernels/comm/communicator.hpp"
#include "run/program.hpp"
#include "run/train.hpp"

namespace rehearse::run {

/// A trade as its server took it.
struct Served {
    std::int64_t rank = 0;
    int step = 0, bucket = 0;
};
/// Of each server, in the order of its updates.
using ServerLogs = std::vector<std::vector<Served>>;

/// Ranks that trade: the first of each group.
std::vector<std::int64_t> trading_ranks(const Schedule& schedule);

/// What is left of a schedule for servers: an Update of each bucket of one of them, or of all (-1).
Schedule kept_by_server(const Schedule& schedule, int server);

/// A communicator for each pair of trading rank (its rank 0) and server (1) that this rank is one of.
using TradeLinks = std::map<std::pair<std::int64_t, std::int64_t>, kernels::Communicator>;  // rank, server
/// Collective over the whole job, ranks and servers.
TradeLinks link_servers(const kernels::Communicator& job, const Schedule& schedule);

/// Both halves of a trade, as its rank sends and receives them.
kernels::RankProgram trade_rounds(const Trade& trade);

/// The average moves towards a model by `share` of their difference; the model becomes by how much, which whoever sent
/// it gives up (Zhang et al. 2015, algorithm 1).
void pull_average(double share, std::span<float> model, std::span<float> average);

/// Updates by what comes for all steps of every trading rank; to be called by each server of the job. Returns in which
/// order.
std::vector<Served> serve(const kernels::Communicator& job, const Schedule& schedule, int server,
                          const Options& options, TradeLinks& links);

/// Collective over the whole job: everybody gets what the servers have written down; `own` is a server's.
ServerLogs share_logs(const kernels::Communicator& job, const Schedule& schedule, const std::vector<Served>& own);

/// By staleness: how many updates were by gradients at weights that so many other updates of the bucket came after.
std::vector<std::int64_t> staleness(const ServerLogs& logs);

}  // namespace rehearse::run
