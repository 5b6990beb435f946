// SPDX-License-Identifier: Apache-2.0
// LAMB (You et al. 2020) where ranks have pieces of tensors, as their updates are shared out (ZeRO) or layers are cut:
// how far a tensor goes depends on the norms of the whole tensor and of its direction. Squares of the pieces are summed
// once a step, two numbers a tensor in one small all-reduce of all buckets along an axis; then each rank takes Adam's
// step on its pieces, as far as their tensors' ratios say.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "core/collectives/library.hpp"
#include "core/methods/averaging.hpp"
#include "core/methods/servers.hpp"
#include "core/methods/synchronous.hpp"
#include "core/methods/trust_ratios.hpp"
#include "schedule/axes/tables.hpp"
#include "schedule/bucket_steps.hpp"
#include "schedule/methods/method.hpp"
#include "schedule/step_context.hpp"

namespace rehearse::schedule {

namespace {

/// Small messages take few rounds: recursive doubling (Thakur et al. 2005), but where a library chooses by itself.
Algorithm for_small(const Algorithm& of_gradients) {
    return of_library(of_gradients) ? of_gradients : Algorithm{.name = "doubling"};
}

class TrustRatioSteps : public MethodSteps {
public:
    using MethodSteps::MethodSteps;

    void before_updates() override {
        std::map<std::vector<int>, std::vector<int>> along;  // buckets by axes
        for (int b = 0; b < buckets_.count(); ++b) {
            const std::vector<int> axes = axes_of(b);
            if (!axes.empty() && is_updated(b)) along[axes].push_back(b);
        }
        for (const auto& [axes, buckets] : along) sum_norms(axes, buckets);
    }

private:
    std::vector<int> axes_of(int b) const {
        const Bucket& bucket = context_.part.buckets[at(b)];
        const int sharded = context_.options.sum.zero > 0 ? bucket.axis : none;
        return axes_of_norms(context_.schedule.mesh, context_.part, bucket, sharded);
    }

    bool is_updated(int b) const {
        return !updates_directly(context_.part.network, context_.part.buckets[at(b)]) &&
               std::ranges::all_of(buckets_.methods(), [&](const auto& method) { return method->updates(b); });
    }

    // Along one axis after the other.
    void sum_norms(const std::vector<int>& axes, const std::vector<int>& buckets) {
        std::vector<int> after{context_.last_compute};
        std::int64_t norms = 0, own = 0;
        for (const int b : buckets) {
            const Bucket& bucket = context_.part.buckets[at(b)];
            after.push_back(context_.ready_by[at(b)]);
            norms += 2 * tensors(context_.part.network, bucket);
            const std::int64_t ranks = context_.options.sum.zero > 0 ? buckets_.sharing(b) : 1;
            own += (bucket.elements + ranks - 1) / ranks;
        }
        // A pass over weights, gradients and both moments, which writes next to nothing.
        std::vector<Work> beside{{{Add{{own}, 3}, Pass::forward, 1, DataType::f32}, 1}};
        for (const int axis : axes) {
            Communicate action = buckets_.message(buckets.front(), CollectiveKind::all_reduce);
            action.axis = AxisIndex{axis};
            action.algorithm = for_small(action.algorithm);
            action.content = Content::norms;
            action.elements = norms;
            action.type = DataType::f32;
            action.beside = std::exchange(beside, {});
            const std::string name = fmt::format("bucket{}:norms_{}{}", buckets.front(),
                                                 name_of(context_.schedule.mesh, axis), buckets_.which_time());
            after = {buckets_.append(std::move(action), std::move(after), name)};
        }
        for (const int b : buckets) context_.ready_by[at(b)] = after.front();
    }
};

// Servers that keep the weights update them, each whole tensors.
std::unique_ptr<MethodSteps> steps(StepContext& context, BucketSteps& buckets) {
    const Schedule& schedule = context.schedule;
    const bool served = schedule.methods.get<Servers>().count > 0 && schedule.methods.get<Averaging>().period == 0;
    const bool whole = schedule.methods.get<Synchronous>().whole_variables;
    if (schedule.optimizer != Optimizer::lamb || served || whole) return nullptr;
    return std::make_unique<TrustRatioSteps>(context, buckets);
}

}  // namespace

extern const Method trust_ratios;  // a row of table.cpp
constinit const Method trust_ratios{.name = "trust_ratios",
                                    .summary = "norms of LAMB's tensors are summed over the ranks that have pieces",
                                    .vocabulary = {},
                                    .steps = steps};

}  // namespace rehearse::schedule
