// SPDX-License-Identifier: Apache-2.0
// K-FAC: factors beside the backward pass of the first update of a step, inverses after it, directions before updates.
#include <fmt/format.h>

#include <utility>

#include "core/curvature.hpp"
#include "schedule/step_maker.hpp"

namespace rehearse::schedule {

namespace {

using Side = Precondition::Side;
using Work = Precondition::Work;

constexpr std::string_view name(Side side) { return side == Side::inputs ? "inputs" : "errors"; }

}  // namespace

bool StepMaker::preconditioned(int b) const {
    return b != none && schedule_.curvature.period > 0 && schedule_.curvature.owners[at(b)] >= 0;
}

void StepMaker::make_factors(int b) {
    if (item_.micro_batch > 0) return;
    const int layer = buckets_[at(b)].layers.front();
    const MatMul dense = dense_of(part_, b);
    for (const Side side : {Side::inputs, Side::errors}) {
        const Problem problem = factor_problem(dense, side, samples_);
        last_compute_ = append(name_of(layer, fmt::format("factor_of_{}", name(side)), ""), Stream::compute,
                               Precondition{.work = Work::factor, .side = side, .bucket = b, .problem = problem}, {});
    }
    if (sharing(b) == 1) return;
    factors_by_.push_back(bucket_collective(b, CollectiveKind::all_reduce, {last_compute_}));
    steps_.back().name = fmt::format("bucket{}:factors", b);
    auto& action = std::get<Communicate>(steps_.back().action);
    action.content = Content::factors;
    action.elements = factor_elements(dense);
    action.type = DataType::f32;
}

void StepMaker::precondition() {
    if (schedule_.curvature.period == 0) return;
    std::vector<int> sums;
    for (std::size_t b = 0; b < buckets_.size(); ++b) {
        if (preconditioned(static_cast<int>(b))) sums.push_back(ready_by_[b]);
    }
    if (item_.micro_batch == 0) precondition("invert", Work::invert, std::exchange(factors_by_, {}));
    precondition("direction", Work::multiply, std::move(sums));
    const int made = last_compute_;
    for (std::size_t b = 0; b < buckets_.size(); ++b) {
        const auto bucket = static_cast<int>(b);
        if (!preconditioned(bucket) || sharing(bucket) == 1) continue;
        ready_by_[b] = bucket_collective(bucket, CollectiveKind::broadcast, {made});
        auto& action = std::get<Communicate>(steps_.back().action);
        action.content = Content::directions;
        action.algorithm = {.name = "tree"};
        action.root = schedule_.curvature.owners[b];
    }
}

void StepMaker::precondition(std::string_view what, Work work, std::vector<int> after) {
    int place = 0;
    for (const int b : most_owned(part_, schedule_.curvature.owners)) {
        const MatMul dense = dense_of(part_, b);
        for (const Side side : {Side::inputs, Side::errors}) {
            const Problem problem =
                work == Work::invert ? inverse_problem(dense, side) : direction_problem(dense, side);
            last_compute_ = append(
                fmt::format("{}{}_of_{}{}", what, place, name(side), which_time()), Stream::compute,
                Precondition{
                    .work = work, .side = side, .place = place, .micro_batch = item_.micro_batch, .problem = problem},
                std::exchange(after, {}));
        }
        ++place;
    }
}

}  // namespace rehearse::schedule
