// SPDX-License-Identifier: Apache-2.0
// What servers keep of workers' weights, as it lies in those of the whole network, and what they have done with it.
#pragma once

#include <cstdint>
#include <set>
#include <span>
#include <vector>

#include "core/error.hpp"
#include "run/methods/server_shard.hpp"
#include "run/program.hpp"

namespace rehearse::run {

/// A bucket of a rank, as its layers, or pieces of them, lie in those of the whole network.
struct KeptBucket {
    struct Piece {
        int layer = 0;
        std::vector<std::int64_t> places;  // of its elements; or `padding`
    };
    std::vector<Piece> pieces;
    std::int64_t elements = 0;
    const RankClass& rank_class;
    RankIndex rank;  // of the first worker
    int index = 0;   // of its rank's
    int stage = 0;
};

/// What the ranks of a worker push: of each stage and rank that has weights which none before it has.
std::vector<KeptBucket> kept_buckets(const Schedule& schedule);
std::vector<float> of_bucket(Program& program, const KeptBucket& bucket, kernels::View LayerTensors::*which);
void put(Program& program, const KeptBucket& bucket, std::span<const float> values, kernels::View LayerTensors::*which);
inline void put_weights(Program& program, const KeptBucket& bucket, std::span<const float> weights) {
    put(program, bucket, weights, &LayerTensors::weights);
}

/// The shards of a worker's samples.
std::set<std::int64_t> shards_of_worker(const Mesh& mesh, RankIndex worker);
/// The first rank of each worker.
std::set<RankIndex> first_ranks(const Mesh& mesh);

/// Calls `take` for what servers have written down, each server's in its order, once `step_of` says that the rank has
/// come to that step: it has what it needs for it.
template <typename StepOf, typename Take>
void play_again(const ServerLogs& logs, const StepOf& step_of, const Take& take) {
    std::vector<std::size_t> next(logs.size());
    for (bool moved = true; moved;) {
        moved = false;
        for (std::size_t s = 0; s < next.size(); ++s) {
            while (next[s] < logs[s].size() && step_of(logs[s][next[s]].rank) == logs[s][next[s]].step) {
                take(logs[s][next[s]++]);
                moved = true;
            }
        }
    }
    for (std::size_t s = 0; s < next.size(); ++s) {
        require(next[s] == logs[s].size(), "what servers have written down can have been");
    }
}

}  // namespace rehearse::run
