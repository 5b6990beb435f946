// SPDX-License-Identifier: Apache-2.0
// Search by gradients (DARTS, Liu et al. 2019): a step's batch is in two halves, after each of which some of the
// weights are updated.
#include "core/methods/bilevel.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "core/error.hpp"
#include "schedule/axes/stages.hpp"
#include "schedule/bucket_steps.hpp"
#include "schedule/methods/method.hpp"
#include "schedule/step_context.hpp"

namespace rehearse::schedule {

namespace {

void read_bilevel(Plan& plan, std::string_view value) {
    plan.methods.edit<Bilevel>().on = read_switch("bilevel", value);
}

constexpr std::array words{
    Word{{"bilevel", "on|off",
          "on: by the gradients of the first half of each batch the shares of mixed operators are updated, by those of "
          "the second half all other weights (first-order DARTS); default off",
          "data"},
         read_bilevel},
};

constexpr std::string_view says_itself = "it says itself in how many parts the batch is";
constexpr std::array conflicts{
    Conflict{"microbatches", When::never, says_itself},
    Conflict{"microbatch", When::never, says_itself},
    Conflict{"pipedream", When::never, "each half needs the weights that the other has left"},
    Conflict{"tables=shared", When::never, "rows are updated as soon as their gradients have come"},
    Conflict{"lag=1", When::never, "each half needs the weights that the other has left"},
    Conflict{"local", When::never, "it says itself when weights are updated"},
    Conflict{"server", When::later, "servers update all weights by each push"},
    Conflict{"kfac", When::never, "it says itself by which part of the batch weights are updated"},
};
constexpr std::array features{
    Feature{"bilevel", "data:bilevel=on", [](const Asked& a) { return a.plan.methods.get<Bilevel>().on; }, conflicts},
};

void complete(Plan& plan) {
    if (plan.methods.get<Bilevel>().on) plan.micro_batches = 2;
}

/// The architecture's tensors have buckets of their own.
std::vector<int> bucket_begins(const Plan& plan, const Stage& stage, const Schedule& schedule) {
    std::vector<int> begins;
    if (!plan.methods.get<Bilevel>().on) return begins;
    const std::vector<Layer>& layers = stage.part.network.layers;
    for (std::size_t i = 0; i < layers.size(); ++i) {
        if (!is_architecture(layers[i].op)) continue;
        begins.push_back(static_cast<int>(i));
        begins.push_back(static_cast<int>(i) + 1);
    }
    const auto trains = [](const Layer& layer) { return is_architecture(layer.op); };
    if (std::ranges::any_of(schedule.network.layers, trains)) return begins;  // of this stage, perhaps none
    throw InputError(fmt::format(
        "--plan '{}': network '{}' has no shares of mixed operators (parameter) that bilevel=on would train "
        "in turn with its weights; darts-small has",
        plan.text, schedule.network.name));
}

class BilevelSteps : public MethodSteps {
public:
    using MethodSteps::MethodSteps;

    bool makes_gradient(int bucket) const override { return updates(bucket); }
    bool updates(int bucket) const override {
        const int first = context_.part.buckets[at(bucket)].layers.front();
        return is_architecture(context_.layers()[at(first)].op) == (context_.item.micro_batch == 0);
    }
};

}  // namespace

extern const Method bilevel;  // a row of table.cpp
constinit const Method bilevel{.name = "bilevel",
                               .summary = "weights and the shares of mixed operators are trained in turn",
                               .vocabulary = {words, features, complete},
                               .updates_often = [](const Plan& plan) { return plan.methods.get<Bilevel>().on; },
                               .bucket_begins = bucket_begins,
                               .steps = [](StepContext& context, BucketSteps& buckets) -> std::unique_ptr<MethodSteps> {
                                   if (!context.schedule.methods.get<Bilevel>().on) return nullptr;
                                   return std::make_unique<BilevelSteps>(context, buckets);
                               }};

}  // namespace rehearse::schedule
