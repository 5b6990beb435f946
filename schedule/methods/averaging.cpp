// SPDX-License-Identifier: Apache-2.0
// Models that ranks train by themselves and average: local SGD (Stich 2019), elastic averaging (Zhang et al. 2015),
// several learners on a device (Koliousis et al. 2019).
#include <algorithm>
#include <array>

#include "core/error.hpp"
#include "core/methods/averaging.hpp"
#include "core/methods/curvature.hpp"
#include "core/methods/servers.hpp"
#include "core/precision.hpp"
#include "schedule/axes/tables.hpp"
#include "schedule/bucket_steps.hpp"
#include "schedule/memory.hpp"
#include "schedule/methods/method.hpp"
#include "schedule/step_context.hpp"

namespace rehearse::schedule {

namespace {

void read_local(Plan& plan, std::string_view value) {
    plan.methods.edit<Averaging>().period = read_count("local", value, most_micro_batches);
}
void read_elastic(Plan& plan, std::string_view value) {
    plan.methods.edit<Averaging>().elastic = read_share("elastic", value, 1);
}
void read_learners(Plan& plan, std::string_view value) {
    plan.methods.edit<Averaging>().learners = read_count("learners", value, 1000);
    if (plan.methods.get<Averaging>().elastic == 0) plan.methods.edit<Averaging>().elastic = one_of_all_models;
}
void read_average_momentum(Plan& plan, std::string_view value) {
    plan.methods.edit<Averaging>().momentum = read_share("average_momentum", value, 0.9999);
}

constexpr std::array words{
    Word{{"local", "N", "each rank updates a model of its own N times, then they are averaged (local SGD)", "data"},
         read_local},
    Word{
        {"elastic", "X",
         "of local: models and their average give up X of their differences instead, while they train (EASGD)", "data"},
        read_elastic},
    Word{{"learners", "N",
          "each device trains N models at the same time, each on its part of the batch, and all are averaged after "
          "local updates (kfac's or 1 unless said) of each; elastic is 1 / all models unless said (Crossbow)",
          "data"},
         read_learners},
    Word{{"average_momentum", "X", "of elastic: the average goes on by X of its last step (Crossbow)", "data"},
         read_average_momentum},
};

constexpr std::array conflicts{
    Conflict{"zero", When::never, "each rank has the whole weights of its model"},
    Conflict{"lag=1", When::never, "gradients are applied at once"},
    Conflict{"dense=shared", When::never, "ranks share no layer, as each has a model of its own"},
    Conflict{"tables=shared", When::never, "there is one model"},
    Conflict{"spatial", When::never, "gradients of shared images are sums"},
    Conflict{"sequence=on", When::never, "gradients of shared rows are sums"},
    Conflict{"microbatches", When::never, "it says itself in how many parts the batch is"},
    Conflict{"microbatch", When::never, "it says itself in how many parts the batch is"},
    Conflict{"compress=fp16", When::never, "no gradients are sent"},
    Conflict{"compress=1bit", When::never, "no gradients are sent"},
    Conflict{"compress=top", When::never, "no gradients are sent"},
};
constexpr std::array conflicts_of_learners{
    Conflict{"pipe", When::later, "each of a device's models is whole on it"},
};
constexpr std::array needs_local{Need{"local", "local=N", "how many updates lie between"}};
constexpr std::array needs_elastic{
    Need{"elastic", "elastic=X", "the average that goes on is what models are pulled to"}};

bool averages(const Plan& plan) {
    return plan.methods.get<Averaging>().period > 0 || plan.methods.get<Averaging>().learners > 1 ||
           plan.methods.get<Averaging>().elastic == one_of_all_models;
}

constexpr std::array features{
    Feature{"local", "data:local=2", [](const Asked& a) { return averages(a.plan); }, conflicts},
    Feature{"elastic",
            "data:local=2:elastic=0.5",
            [](const Asked& a) { return a.plan.methods.get<Averaging>().elastic != 0; },
            {},
            needs_local},
    Feature{"learners", "data:learners=2", [](const Asked& a) { return a.plan.methods.get<Averaging>().learners > 1; },
            conflicts_of_learners},
    Feature{"average_momentum",
            "data:local=2:elastic=0.5:average_momentum=0.9",
            [](const Asked& a) { return a.plan.methods.get<Averaging>().momentum > 0; },
            {},
            needs_elastic},
};

void complete(Plan& plan) {
    if (!averages(plan)) return;
    int& period = plan.methods.edit<Averaging>().period;
    if (period == 0) period = std::max(plan.methods.get<Curvature>().period, 1);
    plan.micro_batches = plan.methods.get<Averaging>().period * plan.methods.get<Averaging>().learners;
}

void describe(const Plan& plan, Schedule& schedule) {
    if (plan.methods.get<Averaging>().elastic != one_of_all_models) return;
    schedule.methods.edit<Averaging>().elastic =
        1.0 / static_cast<double>(plan.methods.get<Averaging>().learners * shards(schedule.mesh));
}

class AveragingSteps : public MethodSteps {
public:
    using MethodSteps::MethodSteps;

    void begin() override {
        if (elastic()) bring_together(Content::differences, {});
    }
    bool sum(int /*bucket*/) override { return true; }  // each rank has its own
    void updated(int step) override { context_.last_compute = step; }
    void end() override {
        if (!elastic() && context_.schedule.methods.get<Servers>().count == 0) {
            bring_together(Content::weights, {context_.last_compute});
        }
    }

private:
    /// All together: an average that servers keep is pulled at rank by rank.
    bool elastic() const {
        return context_.schedule.methods.get<Averaging>().elastic > 0 &&
               context_.schedule.methods.get<Servers>().count == 0;
    }

    void bring_together(Content content, const std::vector<int>& after) {
        for (int b = 0; b < buckets_.count(); ++b) {
            if (buckets_.sharing(b) == 1) continue;
            Communicate action = buckets_.message(b, CollectiveKind::all_reduce);
            action.content = content;
            action.type = DataType::f32;
            if (content == Content::differences) {  // of each model from the average one
                const int learners = context_.schedule.methods.get<Averaging>().learners;
                action.beside.push_back({sum_of(context_.part.buckets[at(b)].elements), learners});
            }
            context_.ready_by[at(b)] = buckets_.append(std::move(action), after);
        }
    }
};

std::unique_ptr<MethodSteps> steps(StepContext& context, BucketSteps& buckets) {
    return context.schedule.methods.get<Averaging>().period > 0 ? std::make_unique<AveragingSteps>(context, buckets)
                                                                : nullptr;
}

/// Each learner has a program with weights, gradients and moments of its own. Where ranks keep the average, that model
/// lies beside them, the difference of each of the rank's models from it, and the sum of these on its way; with
/// momentum, where the average was a step ago.
void add_memory(const Schedule& schedule, const RankClass& rank_class, MemoryUse& use) {
    const Averaging& of = schedule.methods.get<Averaging>();
    if (of.period == 0) return;
    for (Bytes* kind : {&use.weights, &use.master_weights, &use.gradients, &use.optimizer, &use.activations,
                        &use.activation_gradients}) {
        *kind = *kind * of.learners;
    }
    if (of.elastic == 0 || schedule.methods.get<Servers>().count > 0) return;
    const int kept = 2 + of.learners + (of.momentum > 0 ? 1 : 0);
    for (const Bucket& bucket : rank_class.part.buckets) {
        const bool shared = bucket.axis >= 0 && size_of(schedule.mesh, bucket.axis) > 1;
        if (of.learners == 1 && !shared) continue;  // a model that is alone is its own average
        use.optimizer += kept * static_cast<double>(bucket.elements) * size_of(update_type(schedule.precision));
    }
}

}  // namespace

extern const Method averaging;  // a row of table.cpp
constinit const Method averaging{
    .name = "averaging",
    .summary = "ranks train models of their own and average them",
    .vocabulary = {words, features, complete},
    .describe = describe,
    .updates_often = [](const Plan& plan) { return plan.methods.get<Averaging>().period > 0; },
    .add_memory = add_memory,
    .steps = steps};

}  // namespace rehearse::schedule
