// SPDX-License-Identifier: Apache-2.0
#include "schedule/bucket_steps.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/methods/synchronous.hpp"
#include "core/methods/trust_ratios.hpp"
#include "core/precision.hpp"
#include "schedule/axes/tables.hpp"
#include "schedule/methods/buckets.hpp"

namespace rehearse::schedule {

BucketSteps::BucketSteps(StepContext& context)
    : context_(context),
      how_(context.options.sum),
      buckets_(context.part.buckets),
      closes_(context.layers().size(), none) {
    for (std::size_t b = 0; b < buckets_.size(); ++b) closes_[at(buckets_[b].layers.back())] = static_cast<int>(b);
    for (const Method* method : schedule::methods()) {
        if (method->steps == nullptr) continue;
        if (auto steps = method->steps(context, *this)) methods_.push_back(std::move(steps));
        whole_ = whole_ || (method->as_vectors != nullptr && method->as_vectors(context.plan));
    }
}

void BucketSteps::made_gradient(int i, bool last) {
    const bool beside = last && how_.overlap && how_.lag == 0;
    const bool each_time =
        (how_.zero == 3 && !whole_ && how_.lag == 0) || (context_.options.asynchronous && how_.overlap);
    const int closed = beside || each_time ? closes_[at(i)] : none;
    if (closed != none && !waits_for_tie(closed)) sum(closed);
}

void BucketSteps::sum_and_update() {
    if (how_.lag == 0) sum_rest(!how_.overlap && how_.zero < 3);
    update();
}

void BucketSteps::sum_rest(bool all) {
    for (int b = 0; b < count(); ++b) {
        if (all || waits_for_tie(b)) sum(b);
        if (how_.zero < 2) sum_ties(b);
    }
}

// Whoever gets a piece of the sum needs both parts of a tied table before.
bool BucketSteps::waits_for_tie(int b) const { return buckets_[at(b)].tie != none && how_.zero >= 2; }

bool BucketSteps::updates(int b) const {
    return std::ranges::all_of(methods_, [&](const auto& method) { return method->updates(b); });
}

void BucketSteps::sum(int b) {
    if (!updates(b)) return;  // nobody asks for it
    const bool own_way = std::ranges::any_of(methods_, [&](const auto& method) { return method->sum(b); });
    if (!own_way) sum_up(b);
    for (const auto& method : methods_) method->summed(b);
}

void BucketSteps::sum_up(int b) {
    const bool whole =
        whole_ || std::ranges::any_of(methods_, [&](const auto& method) { return method->reads_sum(b); });
    const CollectiveKind kind = how_.zero >= 2 && !whole ? CollectiveKind::reduce_scatter : CollectiveKind::all_reduce;
    // A rank's piece would be of its own stage's part only: so both parts come together first.
    if (kind == CollectiveKind::reduce_scatter) sum_ties(b);
    int& ready_by = context_.ready_by[at(b)];
    Communicate action = message(b, kind);
    if (sharing(b) > 1 && !is_sum(action.algorithm)) {
        const Summed summed = sum_of_samples(b);
        action.axis = AxisIndex{summed.along};
        if (summed.along != none) ready_by = append(std::move(action), summed.after);
    } else if (sharing(b) > 1) {
        ready_by = append(std::move(action), {context_.last_compute, ready_by});
    }
}

BucketSteps::Summed BucketSteps::sum_of_samples(int b) {
    Mesh mesh = context_.schedule.mesh;  // which has both axes since the buckets were made
    const BySamples axes = by_samples(buckets_[at(b)].axis, mesh);
    Summed summed{axes.own, {context_.last_compute}};
    if (axes.shared == none) return summed;
    Communicate action = message(b, CollectiveKind::all_reduce);
    action.axis = AxisIndex{axes.shared};
    action.algorithm = context_.options.tensor;
    context_.ready_by[at(b)] =
        append(std::move(action), summed.after, fmt::format("bucket{}:sum_of_samples{}", b, which_time()));
    summed.after.push_back(context_.ready_by[at(b)]);
    return summed;
}

// All gradients of a tied table are there at the end of the backward pass: earlier, its sum would hold up what this
// stage has to send before the other one can go on.
void BucketSteps::sum_ties(int b) {
    if (buckets_[at(b)].tie == none) return;
    Communicate action{.kind = CollectiveKind::all_reduce,
                       .axis = AxisIndex{buckets_[at(b)].tie},
                       .elements = buckets_[at(b)].tied,
                       .type = how_.wire,
                       .algorithm = {},
                       .of = BucketIndex{b},
                       .micro_batch = micro_batch_of_sum()};
    int& ready_by = context_.ready_by[at(b)];
    ready_by = append(std::move(action), {context_.last_compute, ready_by},
                      fmt::format("bucket{}:tied_{}{}", b, pass_of(CollectiveKind::all_reduce), which_time()));
}

std::int64_t BucketSteps::sharing(int b) const {
    return buckets_[at(b)].axis == none ? 1 : size_of(context_.schedule.mesh, buckets_[at(b)].axis);
}

std::string BucketSteps::which_time() const {
    const bool several = (how_.zero == 3 || context_.options.asynchronous) && context_.schedule.micro_batches > 1;
    return several ? fmt::format("#{}", context_.item.micro_batch) : "";
}

int BucketSteps::micro_batch_of_sum() const {
    return how_.lag > 0 ? context_.schedule.micro_batches - 1 : context_.item.micro_batch;
}

// Where whole variables lie on one rank each, the busiest of n ranks has the largest, or a share of all when that is
// more: as if each had as much.
std::int64_t BucketSteps::elements_on_wire(int b) const {
    const std::int64_t own = buckets_[at(b)].elements;
    if (!context_.schedule.methods.get<Synchronous>().whole_variables) return own;
    std::int64_t all = 0, largest = 0;
    for (const Bucket& bucket : buckets_) all += bucket.axis == buckets_[at(b)].axis ? bucket.elements : 0;
    for (const Layer& layer : context_.layers()) {
        for (const WeightTensor& tensor : weights(layer.op)) largest = std::max(largest, elements(tensor.shape));
    }
    const double most = std::max(1.0, static_cast<double>(sharing(b) * largest) / static_cast<double>(all));
    return static_cast<std::int64_t>(std::llround(static_cast<double>(own) * most));
}

Communicate BucketSteps::message(int b, CollectiveKind kind) const {
    const std::map<int, Algorithm>& algorithms = kind == CollectiveKind::all_reduce ? how_.algorithms : how_.halves;
    const auto chosen = algorithms.find(buckets_[at(b)].axis);
    const bool weights = kind == CollectiveKind::all_gather;
    return {.kind = kind,
            .axis = AxisIndex{buckets_[at(b)].axis},
            .elements = elements_on_wire(b),
            .type = weights ? compute_type(context_.schedule.precision) : how_.wire,
            .algorithm = chosen != algorithms.end() ? chosen->second : Algorithm{},
            .of = BucketIndex{b},
            .micro_batch = micro_batch_of_sum()};
}

int BucketSteps::append(Communicate action, std::vector<int> after, std::string name) {
    if (name.empty()) name = fmt::format("bucket{}:{}{}", int{action.bucket()}, pass_of(action.kind), which_time());
    const Stream stream = gradient_stream(context_.schedule.mesh, action.axis);
    return context_.append(std::move(name), stream, std::move(action), std::move(after));
}

namespace {

// On pieces of tensors LAMB is Adam, with each tensor's own rate (methods/trust_ratios.cpp).
Optimizer optimizer_of(const Schedule& schedule, const Part& part, const Bucket& bucket, int sharded) {
    const bool whole = schedule.methods.get<Synchronous>().whole_variables ||
                       axes_of_norms(schedule.mesh, part, bucket, sharded).empty();
    return schedule.optimizer == Optimizer::lamb && !whole ? Optimizer::adam : schedule.optimizer;
}

}  // namespace

void BucketSteps::update() {
    for (const auto& method : methods_) method->before_updates();
    for (const auto& method : methods_) {
        if (method->update()) return;
    }
    const Schedule& schedule = context_.schedule;
    // Whether any gradient has overflowed decides about all updates.
    std::vector<int> all_sums;
    if (scales_loss(schedule.precision)) all_sums = context_.ready_by;
    for (int b = 0; b < count(); ++b) {
        const Bucket& bucket = buckets_[at(b)];
        if (!updates(b) || updates_directly(context_.part.network, bucket)) continue;
        const std::int64_t ranks = how_.zero > 0 ? sharing(b) : 1;
        const AxisIndex sharded{ranks > 1 ? bucket.axis : none};
        const Op op = update_op(optimizer_of(schedule, context_.part, bucket, sharded),
                                (bucket.elements + ranks - 1) / ranks, tensors(context_.part.network, bucket));
        const Problem problem{op, Pass::update, 1, update_type(schedule.precision)};
        std::vector<int> after = std::exchange(all_sums, {});
        after.push_back(context_.ready_by[at(b)]);
        const int step =
            context_.append(fmt::format("bucket{}:update{}", b, context_.options.asynchronous ? which_time() : ""),
                            Stream::compute, Update{BucketIndex{b}, problem, sharded}, std::move(after));
        for (const auto& method : methods_) method->updated(step);
        if (ranks > 1 && how_.zero < 3)
            context_.weights_by.push_back(append(message(b, CollectiveKind::all_gather), {step}));
    }
}

}  // namespace rehearse::schedule
