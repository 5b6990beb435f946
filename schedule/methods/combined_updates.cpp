// SPDX-License-Identifier: Apache-2.0
// Adasum of updates (Maleki et al. 2021, for Adam and LAMB): each rank updates by its own gradient, then the
// differences of its weights are combined with the others'.
#include <array>

#include "core/methods/combined_updates.hpp"
#include "schedule/bucket_steps.hpp"
#include "schedule/memory.hpp"
#include "schedule/methods/method.hpp"
#include "schedule/step_context.hpp"

namespace rehearse::schedule {

namespace {

void read_combine(Plan& plan, std::string_view value) {
    plan.methods.edit<CombinedUpdates>().on = read_choice("combine", value, "gradients", "updates");
}

constexpr std::array words{
    Word{{"combine", "gradients|updates",
          "of allreduce=adasum; updates: each rank updates its weights by its own gradient, and by how much they have "
          "changed is combined (for Adam and LAMB); default gradients",
          "data"},
         read_combine},
};

constexpr std::string_view own_gradient = "each rank updates all weights by its own gradient first";
constexpr std::array conflicts{
    Conflict{"zero", When::never, own_gradient},
    Conflict{"lag=1", When::never, "each rank updates by its own gradient at once"},
    Conflict{"groups", When::never, "servers update, not ranks"},
    Conflict{"kfac", When::never, "directions are of sums of gradients"},
};
constexpr std::array needs{
    Need{"allreduce=adasum", "allreduce=adasum", "nothing else combines what ranks have changed"}};
constexpr std::array features{
    Feature{"combine=updates", "data:allreduce=adasum:combine=updates",
            [](const Asked& a) { return a.plan.methods.get<CombinedUpdates>().on; }, conflicts, needs},
};

class CombinedUpdateSteps : public MethodSteps {
public:
    CombinedUpdateSteps(StepContext& context, BucketSteps& buckets)
        : MethodSteps(context, buckets), along_(context.part.buckets.size(), none) {}

    /// Only ranks that share samples.
    bool sum(int bucket) override {
        if (buckets_.sharing(bucket) > 1) along_[at(bucket)] = buckets_.sum_of_samples(bucket).along;
        return true;
    }

    void updated(int step) override {
        const int b = std::get<Update>(context_.steps[at(step)].action).bucket;
        if (along_[at(b)] == none) return;
        Communicate action = buckets_.message(b, CollectiveKind::all_reduce);
        action.axis = AxisIndex{along_[at(b)]};
        action.content = Content::differences;
        action.type = DataType::f32;
        action.beside = {{sum_of(context_.part.buckets[at(b)].elements), 2}};  // the difference taken, and added
        context_.weights_by.push_back(buckets_.append(std::move(action), {step}));
    }

private:
    std::vector<int> along_;  // by bucket: the axis of those with samples of their own
};

/// The weights as they were, and by how much they have changed.
void add_memory(const Schedule& schedule, const RankClass& rank_class, MemoryUse& use) {
    if (!schedule.methods.get<CombinedUpdates>().on) return;
    for (const Bucket& bucket : rank_class.part.buckets) {
        use.gradients += 2 * static_cast<double>(bucket.elements) * size_of(DataType::f32);
    }
}

}  // namespace

extern const Method combined_updates;  // a row of table.cpp
constinit const Method combined_updates{
    .name = "combined_updates",
    .summary = "ranks update by their own gradients, and combine what has changed",
    .vocabulary = {words, features},
    .as_vectors = [](const Plan& plan) { return plan.methods.get<CombinedUpdates>().on; },
    .add_memory = add_memory,
    .steps = [](StepContext& context, BucketSteps& buckets) -> std::unique_ptr<MethodSteps> {
        if (!context.schedule.methods.get<CombinedUpdates>().on) return nullptr;
        return std::make_unique<CombinedUpdateSteps>(context, buckets);
    }};

}  // namespace rehearse::schedule
