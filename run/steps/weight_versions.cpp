// SPDX-License-Identifier: Apache-2.0
// Weights that are not simply there: versions that a pipeline stashes, pieces that are gathered for their use.
#include "run/program.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "core/error.hpp"
#include "core/weight_versions.hpp"
#include "run/pieces.hpp"

namespace rehearse::run {

// PipeDream's weight stashing: what a micro-batch's forward pass reads is kept for its backward pass.
void Program::make_weight_versions() {
    // Also on a stage that has no weights to update, such as one of the loss alone.
    asynchronous_ = std::ranges::any_of(schedule_.classes, updates_each_micro_batch);
    if (!asynchronous_) return;
    if (schedule_.precision != Precision::fp32) {
        throw InputError(
            fmt::format("run: schedule=pipedream trains in fp32 only, not in {}: its versions of the "
                        "weights are kept in f32",
                        to_string(schedule_.precision)));
    }
    for (const Bucket& bucket : part().buckets) summed_each_time_.insert(bucket.layers.begin(), bucket.layers.end());
    if (weight_versions(rank_class_) == 1) return;
    versions_.assign(at(rank_class_.slots), std::vector<float>(tensors_->weights().size()));
}

kernels::View Program::version_of(kernels::View weights, int micro_batch) {
    if (versions_.empty() || weights.empty()) return weights;
    const std::span<float> version = versions_[at(micro_batch % rank_class_.slots)];
    return version.subspan(at(weights.data() - tensors_->weights().data()), weights.size());
}

void Program::keep_version(ReadyStep& ready, int micro_batch) {
    if (versions_.empty() || !begun_micro_batches_.insert(micro_batch).second) return;
    const std::span<const float> latest = tensors_->weights();
    const std::span<float> version = versions_[at(micro_batch % rank_class_.slots)];
    ready.before = [latest, version, also = std::move(ready.before)] {
        std::ranges::copy(latest, version.begin());
        if (also) also();
    };
}

// This rank's share where the ranks share a bucket.
Range Program::own_piece(int bucket) const {
    const Bucket& of = part().buckets[at(bucket)];
    const std::int64_t ranks = size_of(schedule_.mesh, of.axis);
    return Collective{CollectiveKind::reduce_scatter, {}, {ranks, ranks}, of.elements}.chunk(
        place_on(schedule_.mesh, of.axis, rank_at(schedule_.mesh, coordinates_)));
}

// Weights of which this rank keeps its piece only stay where they lie when they are let go: some of the others' become
// NaN, so that whoever reads them before they are gathered again spoils the loss.
void Program::let_go_of_gathered_weights() {
    if (!gathers_weights(rank_class_)) return;
    const auto spoil = [this](int bucket) {
        constexpr std::int64_t marks = 16;
        const kernels::View all = tensors_->bucket(bucket).read();
        const std::vector<float> none{std::numeric_limits<float>::quiet_NaN()};
        const Range own = own_piece(bucket);
        for (std::int64_t i = 0; i < marks; ++i) {
            const std::int64_t place = static_cast<std::int64_t>(all.size()) * i / marks;
            if (place < own.begin || place >= own.end) assign(all.subspan(at(place), 1), none);
        }
    };
    std::vector<int> bucket_of(part().network.layers.size(), -1);
    for (std::size_t b = 0; b < part().buckets.size(); ++b) {
        for (const int layer : part().buckets[b].layers) bucket_of[at(layer)] = static_cast<int>(b);
    }
    std::map<int, std::size_t> last_use;  // by bucket
    for (std::size_t i = 0; i < steps_.size(); ++i) {
        const Action& action = steps_[i].step->action;
        if (const auto* compute = std::get_if<Compute>(&action)) {
            const int owner = part().network.layers[at(compute->layer)].weights_of;
            last_use[bucket_of[at(owner < 0 ? compute->layer : owner)]] = i;
        } else if (const auto* gather = std::get_if<Communicate>(&action);
                   gather != nullptr && gather->bucket >= 0 && gather->kind == CollectiveKind::all_gather) {
            const auto used = last_use.find(gather->bucket);
            if (used == last_use.end()) continue;
            steps_[used->second].after = [spoil, bucket = gather->bucket] { spoil(bucket); };
        } else if (const auto* update = std::get_if<Update>(&action); update != nullptr && update->sharded >= 0) {
            steps_[i].after = [spoil, bucket = update->bucket] { spoil(bucket); };
        }
    }
}

}  // namespace rehearse::run
