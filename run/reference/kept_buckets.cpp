// SPDX-License-Identifier: Apache-2.0
#include "run/reference/kept_buckets.hpp"

#include <algorithm>

#include "core/index.hpp"
#include "run/methods/workers.hpp"
#include "run/pieces.hpp"

namespace rehearse::run {

std::vector<KeptBucket> kept_buckets(const Schedule& schedule) {
    std::vector<KeptBucket> all;
    for (int stage = 0; stage < stages(schedule); ++stage) {
        for (const RankIndex rank : pushing_ranks_of(schedule, stage)) {
            const RankClass& own = schedule.classes[at(class_of(schedule, rank))];
            const std::vector<std::int64_t> along = places_on(schedule.mesh, rank);
            for (const PushPull* push : pushes_of(schedule, rank)) {
                const bool known = std::ranges::any_of(
                    all, [&](const KeptBucket& other) { return other.rank == rank && other.index == push->bucket; });
                if (known) continue;  // once an update of a step
                const Bucket& bucket = own.part.buckets[at(push->bucket)];
                KeptBucket kept{{}, bucket.elements, own, rank, push->bucket, stage};
                for (const int layer : bucket.layers) {
                    const Origin& origin = own.part.origins[at(layer)];
                    const Op& op = own.part.network.layers[at(layer)].op;
                    kept.pieces.push_back({origin.layer, indices_of_weights(schedule, origin, op, along)});
                }
                all.push_back(std::move(kept));
            }
        }
    }
    return all;
}

std::vector<float> of_bucket(Program& program, const KeptBucket& bucket, kernels::View LayerTensors::*which) {
    std::vector<float> all;
    for (const KeptBucket::Piece& piece : bucket.pieces) {
        const std::span<const float> whole = program.tensors().layer(piece.layer).*which;
        for (const std::int64_t place : piece.places) all.push_back(place == padding ? 0 : whole[at(place)]);
    }
    return all;
}

void put(Program& program, const KeptBucket& bucket, std::span<const float> values,
         kernels::View LayerTensors::*which) {
    auto next = values.begin();
    for (const KeptBucket::Piece& piece : bucket.pieces) {
        const std::span<float> whole = program.tensors().layer(piece.layer).*which;
        for (const std::int64_t place : piece.places) {
            if (place != padding) whole[at(place)] = *next;
            ++next;
        }
    }
}

std::set<std::int64_t> shards_of_worker(const Mesh& mesh, RankIndex worker) {
    std::set<std::int64_t> found;
    for (RankIndex rank{0}; rank < ranks(mesh); ++rank) {
        if (worker_of(mesh, rank) == worker) found.insert(shard_of(mesh, rank));
    }
    return found;
}

std::set<RankIndex> first_ranks(const Mesh& mesh) {
    std::set<RankIndex> found;
    for (RankIndex rank{0}; rank < ranks(mesh); ++rank) found.insert(worker_of(mesh, rank));
    return found;
}

}  // namespace rehearse::run
