// SPDX-License-Identifier: Apache-2.0
// K-FAC: factors beside the backward pass of the first update of a step, inverses after it, directions before updates.
#include "core/methods/curvature.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "core/error.hpp"
#include "core/methods/averaging.hpp"
#include "schedule/axes/spatial.hpp"
#include "schedule/axes/stages.hpp"
#include "schedule/bucket_steps.hpp"
#include "schedule/memory.hpp"
#include "schedule/methods/method.hpp"
#include "schedule/step_context.hpp"

namespace rehearse::schedule {

namespace {

using Side = Precondition::Side;
using Work = Precondition::Work;

void read_kfac(Plan& plan, std::string_view value) {
    plan.methods.edit<Curvature>().period = read_count("kfac", value, most_micro_batches);
}
void read_damping(Plan& plan, std::string_view value) {
    plan.methods.edit<Curvature>().damping = read_share("damping", value, 1e6);
}

constexpr std::array words{
    Word{{"kfac", "N",
          "gradients of dense layers are multiplied with the inverses of their two K-FAC factors, shared out among the "
          "ranks, and new after N updates (a step has N, each on its part of the batch)",
          "data"},
         read_kfac},
    Word{{"damping", "X", "of kfac: X is added to the diagonals of both factors; default 0.03", "data"}, read_damping},
};

constexpr std::array conflicts{
    Conflict{"lag=1", When::later, "factors and gradients would be of different steps"},
    Conflict{"bottom=one", When::later, "one rank has layers that others would invert"},
    Conflict{"microbatches", When::never, "it says itself in how many updates' parts the batch is"},
    Conflict{"microbatch", When::never, "it says itself in how many updates' parts the batch is"},
};
constexpr std::array needs_kfac{Need{"kfac", "kfac=N", "it is what factors are damped by"}};
constexpr std::array features{
    Feature{"kfac", "data:kfac=2", [](const Asked& a) { return a.plan.methods.get<Curvature>().period > 0; },
            conflicts},
    Feature{"damping",
            "data:kfac=2:damping=0.1",
            [](const Asked& a) { return a.plan.methods.get<Curvature>().damping != Curvature{}.damping; },
            {},
            needs_kfac},
};

void complete(Plan& plan) {
    const int period = plan.methods.get<Curvature>().period, local = plan.methods.get<Averaging>().period;
    if (period == 0) return;
    if (local > 0 && local != period) {
        throw InputError(
            fmt::format("kfac={} with local={}: a step has as many updates as both say, so that they must "
                        "be the same: kfac={}",
                        period, local, local));
    }
    plan.micro_batches = period * plan.methods.get<Averaging>().learners;
}

constexpr std::string_view name(Side side) { return side == Side::inputs ? "inputs" : "errors"; }

class CurvatureSteps : public MethodSteps {
public:
    CurvatureSteps(StepContext& context, BucketSteps& buckets)
        : MethodSteps(context, buckets), owners_(owners_of(context.part, shards_with_factors(context.schedule))) {}

    /// Of a layer whose inputs and errors are there: both factors, and their sums over the ranks.
    void made_gradient(int b) override {
        if (!is_first() || !preconditioned(b)) return;
        const int layer = context_.part.buckets[at(b)].layers.front();
        const MatMul dense = dense_of(context_.part, b);
        for (const Side side : {Side::inputs, Side::errors}) {
            const Problem problem = factor_problem(dense, side, context_.samples);
            context_.last_compute =
                context_.append(context_.name_of(layer, fmt::format("factor_of_{}", name(side)), ""), Stream::compute,
                                Precondition{.work = Work::factor,
                                             .side = side,
                                             .bucket = BucketIndex{b},
                                             .micro_batch = context_.item.micro_batch,
                                             .problem = problem},
                                {});
        }
        if (!shares(b)) return;
        Communicate action = buckets_.message(b, CollectiveKind::all_reduce);
        action.content = Content::factors;
        if (!is_sum(action.algorithm)) action.algorithm = {};  // means are of all rows, whatever gradients become
        action.elements = factor_elements(dense);
        action.type = DataType::f32;
        factors_by_.push_back(
            buckets_.append(std::move(action), {context_.last_compute}, fmt::format("bucket{}:factors", b)));
    }

    bool reads_sum(int b) const override { return preconditioned(b); }

    /// Each rank's own layers, then what has become of their gradients, to all.
    void before_updates() override {
        std::vector<int> sums;
        for (int b = 0; b < buckets_.count(); ++b) {
            if (preconditioned(b)) sums.push_back(context_.ready_by[at(b)]);
        }
        if (is_first()) precondition("invert", Work::invert, std::exchange(factors_by_, {}));
        precondition("direction", Work::multiply, std::move(sums));
        const int made = context_.last_compute;
        for (int b = 0; b < buckets_.count(); ++b) {
            if (!preconditioned(b) || !shares(b)) continue;
            Communicate action = buckets_.message(b, CollectiveKind::broadcast);
            action.content = Content::directions;
            action.algorithm = {.name = "tree"};
            action.type = DataType::f32;
            action.root = first_of_shard(owners_[at(b)], action.axis);
            context_.ready_by[at(b)] = buckets_.append(std::move(action), {made});
        }
    }

private:
    /// Along an axis, of the ranks that share the samples of a shard: all of these have its directions.
    std::int64_t first_of_shard(std::int64_t shard, int axis) const {
        const Mesh& mesh = context_.schedule.mesh;
        RankIndex rank{0};
        while (shard_of(mesh, rank) != shard) ++rank;
        return place_on(mesh, axis, rank);
    }

    /// Factors are of the first of the updates by them, of each of a device's models.
    bool is_first() const { return context_.item.micro_batch % context_.schedule.methods.get<Curvature>().period == 0; }

    bool preconditioned(int b) const { return owners_[at(b)] >= 0 || owners_[at(b)] == every_shard; }
    /// Whether ranks have the same weights, not only the same layer in models of their own.
    bool shares(int b) const {
        return buckets_.sharing(b) > 1 && context_.schedule.methods.get<Averaging>().period == 0;
    }

    void precondition(std::string_view what, Work work, std::vector<int> after) {
        int place = 0;
        for (const int b : most_owned(context_.part, owners_)) {
            const MatMul dense = dense_of(context_.part, b);
            for (const Side side : {Side::inputs, Side::errors}) {
                Precondition action{
                    .work = work,
                    .side = side,
                    .place = place,
                    .micro_batch = context_.item.micro_batch,
                    .problem = work == Work::invert ? inverse_problem(dense, side) : direction_problem(dense, side)};
                context_.last_compute =
                    context_.append(fmt::format("{}{}_of_{}{}", what, place, name(side), buckets_.which_time()),
                                    Stream::compute, std::move(action), std::exchange(after, {}));
            }
            ++place;
        }
    }

    std::vector<std::int64_t> owners_;  // by bucket
    std::vector<int> factors_by_;       // steps that sum factors
};

std::unique_ptr<MethodSteps> steps(StepContext& context, BucketSteps& buckets) {
    return context.schedule.methods.get<Curvature>().period > 0 ? std::make_unique<CurvatureSteps>(context, buckets)
                                                                : nullptr;
}

std::vector<int> bucket_begins(const Plan& plan, const Stage& stage, const Schedule& /*schedule*/) {
    return plan.methods.get<Curvature>().period > 0 ? preconditioned_alone(stage.part.network) : std::vector<int>{};
}

void check_layers(const Plan& plan, Schedule& schedule) {
    const auto has_factors = [](const Layer& layer) { return is_preconditioned(layer.op); };
    if (plan.methods.get<Curvature>().period == 0) return;
    if (plan.methods.get<Edges>().apart) {
        throw InputError(
            fmt::format("--plan '{}': kfac with edges=apart: factors are of all pixels of a convolution, which that "
                        "makes three of: leave out edges",
                        plan.text));
    }
    if (std::ranges::any_of(schedule.network.layers, has_factors)) return;
    throw InputError(
        fmt::format("network '{}' has no dense layer or 2-D convolution of its own weights, without a fused "
                    "activation: kfac needs one",
                    schedule.network.name));
}

/// Both factors of all layers, and the inverses of the rank that owns most.
void add_memory(const Schedule& schedule, const RankClass& rank_class, MemoryUse& use) {
    if (schedule.methods.get<Curvature>().period == 0) return;
    const Part& part = rank_class.part;
    const std::vector<std::int64_t> owners = owners_of(part, shards_with_factors(schedule));
    const int models = schedule.methods.get<Averaging>().learners;
    double sum = 0;
    for (std::size_t b = 0; b < part.buckets.size(); ++b) {
        if (owners[b] < 0 && owners[b] != every_shard) continue;
        sum += static_cast<double>(factor_elements(dense_of(part, static_cast<int>(b))));
    }
    for (const int b : most_owned(part, owners)) {
        const MatMul dense = dense_of(part, b);
        sum += static_cast<double>(input_rows(dense) * input_rows(dense) + dense.n * dense.n);
    }
    use.optimizer += models * sum * size_of(DataType::f32);
}

}  // namespace

extern const Method curvature;  // a row of table.cpp
constinit const Method curvature{
    .name = "curvature",
    .summary = "gradients are multiplied with inverses of K-FAC's factors",
    .vocabulary = {words, features, complete},
    .describe = check_layers,
    .updates_often = [](const Plan& plan) { return plan.methods.get<Curvature>().period > 1; },
    .bucket_begins = bucket_begins,
    .add_memory = add_memory,
    .steps = steps};

}  // namespace rehearse::schedule
