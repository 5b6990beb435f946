// SPDX-License-Identifier: Apache-2.0
// Adasum of updates: what a rank's own update has changed of its weights, combined with what others have.
#include "core/methods/combined_updates.hpp"

#include <map>
#include <utility>

#include "run/methods/method.hpp"

namespace rehearse::run {

namespace {

/// All-reduces of differences. Moments stay each rank's own.
class CombinedUpdatesMethod : public Method {
public:
    explicit CombinedUpdatesMethod(RankContext& rank) : rank_(rank) {}

    bool prepare(ReadyStep& ready) override {
        const auto* const communicate = std::get_if<Communicate>(&ready.step->action);
        if (communicate == nullptr || communicate->content != Content::differences) return false;
        Changed& of = changed_[communicate->bucket()];
        const std::span<float> weights = rank_.tensors.bucket(communicate->bucket()).weights;
        of.before.resize(weights.size());
        of.by.resize(weights.size());
        ready.data = std::span<float>{of.by};
        ready.before = [&of, weights] {
            for (std::size_t i = 0; i < weights.size(); ++i) of.by[i] = weights[i] - of.before[i];
        };
        ready.after = [&of, weights] {
            for (std::size_t i = 0; i < weights.size(); ++i) weights[i] = of.before[i] + of.by[i];
        };
        return true;
    }

    void complete(std::span<ReadyStep> steps) override {
        for (ReadyStep& ready : steps) {
            const auto* const update = std::get_if<Update>(&ready.step->action);
            if (update == nullptr || !changed_.contains(update->bucket)) continue;
            const std::span<const float> weights = rank_.tensors.bucket(update->bucket).weights;
            ready.before = [&of = changed_.at(update->bucket), weights, first = std::move(ready.before)] {
                if (first) first();
                of.before.assign(weights.begin(), weights.end());
            };
        }
    }

private:
    struct Changed {
        std::vector<float> before, by;
    };
    RankContext& rank_;
    std::map<int, Changed> changed_;  // by bucket
};

}  // namespace

Reference train_by_combined_updates;      // run/reference/single_rank_combined_updates.cpp
extern const MethodRow combined_updates;  // a row of methods.cpp
constinit const MethodRow combined_updates{
    .name = "combined_updates",
    .used = [](const Schedule& s) { return s.methods.get<CombinedUpdates>().on; },
    .make = make_method<CombinedUpdatesMethod>,
    .sums_gradients = false,
    .own_state = true,
    .reference = train_by_combined_updates};

}  // namespace rehearse::run
