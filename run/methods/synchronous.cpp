// SPDX-License-Identifier: Apache-2.0
#include "run/methods/synchronous.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include "core/error.hpp"
#include "core/weight_versions.hpp"
#include "kernels/convert.hpp"
#include "run/pieces.hpp"
#include "run/steps/gradient_sums.hpp"

namespace rehearse::run {

SynchronousMethod::SynchronousMethod(RankContext& rank) : rank_(rank), sent_(rank.part().buckets.size()) {
    for (const int bucket : buckets_summed_each_time(rank.schedule, rank.rank_class)) {
        const Range own = rank.own_piece(bucket);
        sums_[bucket].resize(rank.tensors.gradients().first(at(own.end - own.begin)).size_bytes());
    }
}

bool SynchronousMethod::prepare(ReadyStep& ready) {
    const auto* const communicate = std::get_if<Communicate>(&ready.step->action);
    if (communicate == nullptr || communicate->content != Content::usual) return false;
    if (communicate->axis == rank_.part().buckets[at(communicate->bucket())].tie) {
        prepare_tie(ready, *communicate);
        return true;
    }
    const BucketTensors& bucket = rank_.tensors.bucket(communicate->bucket());
    const bool weights = communicate->kind == CollectiveKind::all_gather;
    ready.data = weights ? bucket.read() : bucket.applied;
    const kernels::View kept = ready.data;
    if (rank_.device != nullptr) stage(ready);
    if (!weights && kept.type() == communicate->type) ready.on_device = kept;
    if (!weights) send_as(ready, communicate->type);
    require(ready.data.type() == communicate->type, "what is sent is of the type that is sent");
    if (communicate->kind == CollectiveKind::reduce_scatter) add_up_micro_batches(ready, *communicate, kept);
    return true;
}

void SynchronousMethod::add_up_micro_batches(ReadyStep& ready, const Communicate& communicate,
                                             kernels::View gradients) {
    const auto sum = sums_.find(communicate.bucket());
    if (sum == sums_.end()) return;
    const Range own = rank_.own_piece(communicate.bucket());
    const kernels::View mine = gradients.subspan(at(own.begin), at(own.end - own.begin));
    const kernels::View so_far{sum->second.data(), mine.size(), mine.type()};
    const bool first = turn_of(rank_.rank_class, communicate.micro_batch) == 0;
    ready.additions.push_back(first ? Addition{so_far, mine, true} : Addition{so_far, mine});
    if (is_last(rank_.schedule, rank_.rank_class, communicate.micro_batch))
        ready.additions.push_back({mine, so_far, true});
}

// The host sends what it has of a device's memory in memory of its own; both copies run beside the device's kernels.
void SynchronousMethod::stage(ReadyStep& ready) {
    const kernels::View there = ready.data;
    kernels::Device* const device = rank_.device;
    staging_.push_back(device->allocate_staging(there.size_bytes()));
    const kernels::View here{staging_.back().get(), there.size(), there.type()};
    ready.data = here;
    ready.before = [device, there, here] { device->copy_beside(here.bytes(), there.bytes(), here.size_bytes()); };
    ready.after = [device, there, here] { device->copy_beside(there.bytes(), here.bytes(), here.size_bytes()); };
}

// The gradient of a table that another stage has, too: its first elements, as the table's owner has them.
void SynchronousMethod::prepare_tie(ReadyStep& ready, const Communicate& communicate) {
    ready.data = rank_.tensors.bucket(communicate.bucket()).applied.first(at(communicate.elements));
    const int layer = rank_.part().buckets[at(communicate.bucket())].layers.front();
    if (!rank_.part().origins[at(layer)].transposed) return send_as(ready, communicate.type);
    const kernels::View kept = ready.data;
    ready.data = room(sent_[at(communicate.bucket())], kept.size(), communicate.type);
    // Here it lies {width, words}.
    const Shape shape = weights(rank_.part().network.layers[at(layer)].op).front().shape;
    ready.before = [kept, sent = ready.data, width = shape[0]] {
        assign(sent, transposed<float>(floats_of(kept), width));
    };
    ready.after = [kept, sent = ready.data, words = shape[1]] {
        assign(kept, transposed<float>(floats_of(sent), words));
    };
}

// Gradients that are kept in another type are rounded to what is sent, and the sums taken back.
void SynchronousMethod::send_as(ReadyStep& ready, DataType type) {
    const kernels::View kept = ready.data;
    if (type == kept.type()) return;
    const kernels::View sent = room(sent_[at(std::get<Communicate>(ready.step->action).bucket())], kept.size(), type);
    ready.data = sent;
    ready.before = [kept, sent, first = std::move(ready.before)] {
        if (first) first();
        kernels::convert(kept, sent);
    };
    ready.after = [kept, sent, last = std::move(ready.after)] {
        kernels::convert(sent, kept);
        if (last) last();
    };
}

void SynchronousMethod::complete(std::span<ReadyStep> steps) {
    if (std::ranges::any_of(rank_.schedule.classes, combines_gradients)) average_what_is_shared(steps);
    if (gathers_weights(rank_.rank_class)) spoil_what_is_let_go(steps);
}

// Adasum combines means. What several ranks make together of their samples (the gradients of experts, of dense layers
// that they share) is a sum of their own means; and what is combined grows with its vectors, so that it can be divided
// afterwards.
void SynchronousMethod::average_what_is_shared(std::span<ReadyStep> steps) const {
    for (ReadyStep& ready : steps) {
        const auto* const update = std::get_if<Update>(&ready.step->action);
        if (update == nullptr) continue;
        const double summed = means_summed(rank_.schedule, rank_.part().buckets[at(update->bucket)].axis, rank_.rank);
        if (summed == 1) continue;
        const std::span<float> gradients = rank_.tensors.bucket(update->bucket).applied;
        ready.before = [gradients, summed] {
            for (float& gradient : gradients) gradient /= static_cast<float>(summed);
        };
    }
}

// With zero=3, weights of which this rank keeps its piece only stay where they lie when they are let go.
void SynchronousMethod::spoil_what_is_let_go(std::span<ReadyStep> steps) {
    const Part& part = rank_.part();
    std::vector<int> bucket_of(part.network.layers.size(), -1);
    for (std::size_t b = 0; b < part.buckets.size(); ++b) {
        for (const int layer : part.buckets[b].layers) bucket_of[at(layer)] = static_cast<int>(b);
    }
    std::map<int, std::size_t> last_use;  // by bucket
    for (std::size_t i = 0; i < steps.size(); ++i) {
        const Action& action = steps[i].step->action;
        if (const auto* compute = std::get_if<Compute>(&action)) {
            const int owner = part.network.layers[at(compute->layer)].weights_of;
            last_use[bucket_of[at(owner < 0 ? compute->layer : owner)]] = i;
        } else if (const auto* gather = std::get_if<Communicate>(&action); gather != nullptr && gather->of_bucket() &&
                                                                           gather->kind == CollectiveKind::all_gather &&
                                                                           gather->content == Content::usual) {
            const auto used = last_use.find(gather->bucket());
            if (used == last_use.end()) continue;
            steps[used->second].after = [this, bucket = gather->bucket()] { spoil(bucket); };
        } else if (const auto* update = std::get_if<Update>(&action); update != nullptr && update->sharded >= 0) {
            steps[i].after = [this, bucket = update->bucket] { spoil(bucket); };
        }
    }
}

// Some of the others' weights become NaN, so that whoever reads them before they are gathered again spoils the loss.
void SynchronousMethod::spoil(int bucket) const {
    constexpr std::int64_t marks = 16;
    const kernels::View all = rank_.tensors.bucket(bucket).read();
    const std::vector<float> none{std::numeric_limits<float>::quiet_NaN()};
    const Range own = rank_.own_piece(bucket);
    for (std::int64_t i = 0; i < marks; ++i) {
        const std::int64_t place = static_cast<std::int64_t>(all.size()) * i / marks;
        if (place < own.begin || place >= own.end) assign(all.subspan(at(place), 1), none);
    }
}

// Adasum combines each rank's own mean.
std::int64_t SynchronousMethod::loss_batch(std::int64_t batch) const {
    const auto& classes = rank_.schedule.classes;  // a stage without weights has none to combine
    if (std::ranges::none_of(classes, combines_gradients)) return batch;
    const bool each_time = std::ranges::any_of(classes, updates_each_micro_batch);
    return rank_.schedule.batch_per_rank / (each_time ? rank_.schedule.micro_batches : 1);
}

Reference train_in_step;             // run/reference/single_rank_in_step.cpp
extern const MethodRow synchronous;  // a row of methods.cpp
constinit const MethodRow synchronous{.name = "synchronous",
                                      .used = [](const Schedule&) { return true; },
                                      .make = make_method<SynchronousMethod>,
                                      .reference = train_in_step};

}  // namespace rehearse::run
