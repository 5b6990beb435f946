// SPDX-License-Identifier: Apache-2.0
// In which order servers took what workers pushed: for all ranks, and how stale that was.
#include "core/index.hpp"
#include "core/methods/servers.hpp"
#include "kernels/comm/idle.hpp"
#include "run/methods/server_shard.hpp"

namespace rehearse::run {

ServerLogs share_logs(const kernels::Communicator& job, const Schedule& schedule, const std::vector<Served>& own) {
    ServerLogs logs;
    for (std::int64_t server = 0; server < schedule.methods.get<Servers>().count; ++server) {
        const std::int64_t root = job.size() - schedule.methods.get<Servers>().count + server;
        std::vector<Served>& log = logs.emplace_back();
        if (job.rank() == root) log = own;
        std::uint64_t count = log.size();
        job.broadcast(std::as_writable_bytes(std::span{&count, 1}), root, kernels::considerate());
        log.resize(count);
        if (count > 0) job.broadcast(std::as_writable_bytes(std::span{log}), root, kernels::considerate());
    }
    return logs;
}

std::vector<std::int64_t> staleness(const ServerLogs& logs) {
    std::vector<std::int64_t> counts;
    for (const std::vector<Served>& log : logs) {
        std::map<std::pair<int, int>, std::int64_t> updates;        // by stage and bucket
        std::map<std::pair<int, std::int64_t>, std::int64_t> last;  // by bucket and rank: the update that it got
        for (const Served& served : log) {
            const std::int64_t before = updates[{served.stage, served.bucket}]++;
            const auto known = last.try_emplace({served.bucket, served.rank}, 0).first;
            const std::size_t stale = at(before - known->second);
            if (counts.size() <= stale) counts.resize(stale + 1);
            ++counts[stale];
            known->second = before + 1;
        }
    }
    return counts;
}

}  // namespace rehearse::run
