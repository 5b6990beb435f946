// SPDX-License-Identifier: Apache-2.0
#include "schedule/rank_classes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>

#include "core/error.hpp"
#include "core/index.hpp"
#include "core/methods/compression.hpp"
#include "core/methods/lag.hpp"
#include "core/precision.hpp"
#include "schedule/axes/shares.hpp"
#include "schedule/costs.hpp"
#include "schedule/memory.hpp"
#include "schedule/mesh.hpp"
#include "schedule/methods/buckets.hpp"
#include "schedule/methods/method.hpp"

namespace rehearse::schedule {

namespace {

/// Of a stage's tables that another stage has, too: the axis of both, and how large the table is.
std::map<int, std::pair<int, std::int64_t>> axes_of_ties(const Stage& stage, StageIndex own, Mesh& mesh) {
    std::map<int, std::pair<int, std::int64_t>> axes;
    const int pipe = axis_index(mesh, "pipe");
    for (const auto& [layer, tie] : stage.ties) {
        axes[layer] = {pair_of(mesh, pipe, std::min<int>(own, tie.stage), std::max<int>(own, tie.stage)), tie.elements};
    }
    return axes;
}

/// InputError where ranks have pieces of some tensors of a layer and all of others: what each combines for itself would
/// change the latter apart.
void check_vectors(const Part& part, const Plan& plan) {
    for (std::size_t i = 0; i < part.origins.size(); ++i) {
        const Origin& origin = part.origins[i];
        const Layer& layer = part.network.layers[i];
        const auto count = static_cast<int>(weights(layer.op).size());
        int cut = 0;
        for (int tensor = origin.tensor; tensor < origin.tensor + count; ++tensor) {
            cut += std::ranges::find(origin.cuts, tensor, &Cut::tensor) == origin.cuts.end() ? 0 : 1;
        }
        if (cut == 0 || cut == count) continue;
        throw InputError(fmt::format(
            "--plan '{}': network '{}': ranks have pieces of some tensors of '{}' and all of others, which would no "
            "longer be alike: choose gradients that are summed, or no tensor",
            plan.text, part.network.name, layer.name));
    }
}

/// InputError where rows that are updated as soon as their gradients have come would be read afterwards, by a forward
/// pass of the same step.
void check_rows(const RankClass& rank_class, const Plan& plan) {
    bool updated = false;
    for (const Step& step : rank_class.steps) {
        const auto* compute = std::get_if<Compute>(&step.action);
        if (compute == nullptr || !updates_directly(rank_class.part.network.layers[at(compute->layer)].op)) continue;
        if (compute->problem.pass != Pass::forward) updated = true;
        if (compute->problem.pass != Pass::forward || !updated) continue;
        throw InputError(
            fmt::format("--plan '{}': rows of tables are updated as soon as their gradients have come, so that all "
                        "forward passes of their stage go before: choose schedule=gpipe without recompute, or no more "
                        "micro-batches than stages",
                        plan.text));
    }
}

/// Of each layer, whether ranks have pieces of its weights.
std::vector<bool> pieces_of(const Part& part) {
    std::vector<bool> pieces;
    for (const Origin& origin : part.origins) pieces.push_back(!origin.cuts.empty());
    return pieces;
}

}  // namespace

const PipelineStrategy& strategy_of(const Plan& plan) {
    const auto strategy = std::ranges::find(pipeline_strategies(), plan.pipeline, &PipelineStrategy::name);
    require(strategy != pipeline_strategies().end(), "a pipeline schedule that parse_plan accepted");
    return *strategy;
}

ClassMaker::ClassMaker(Schedule& schedule, const Plan& plan, const Machine& machine, std::vector<Stage> stages)
    : schedule_(schedule), plan_(plan), machine_(machine), stages_(std::move(stages)) {
    for (Stage& stage : stages_) make_buckets_of(stage, schedule);
}

void ClassMaker::make_buckets_of(Stage& stage, Schedule& schedule) {
    StepOptions options{.sum = {.overlap = plan_.overlap,
                                .zero = plan_.zero,
                                .wire = plan_.methods.get<Rounding>().type.value_or(wire_type(schedule.precision)),
                                .lag = plan_.methods.get<Lag>().steps},
                        .tensor = choose_layer_sum(plan_, machine_, schedule.mesh),
                        .tensor_halves = {},
                        .recompute = plan_.recompute,
                        .async_sums = plan_.async_sums,
                        .stage = StageIndex{options_.size()},
                        .asynchronous = strategy_of(plan_).asynchronous};
    if (const int tensor = axis_index(schedule.mesh, "tensor"); tensor >= 0)
        options.tensor_halves = choose_halves(plan_.tensor_sum, machine_, schedule.mesh, tensor);
    bool alone = false, as_vectors = false;
    std::vector<int> begins;
    for (const Method* method : methods()) {
        if (method->updates_often != nullptr) options.asynchronous |= method->updates_often(plan_);
        if (method->as_vectors != nullptr) as_vectors |= method->as_vectors(plan_);
        if (method->alone != nullptr) alone |= method->alone(plan_);
        if (method->bucket_begins == nullptr) continue;
        const std::vector<int> more = method->bucket_begins(plan_, stage, schedule);
        begins.insert(begins.end(), more.begin(), more.end());
    }
    const StageIndex own{options_.size()};
    const std::vector<int> axes = axes_of(stage, own, !alone, schedule.mesh);
    for (const int axis : axes) {
        if (axis < 0) continue;
        options.sum.algorithms[axis] = choose_all_reduce(plan_, machine_, schedule.mesh, axis);
        options.sum.halves[axis] = choose_halves(plan_.all_reduce, machine_, schedule.mesh, axis);
    }
    if (!schedule.stage_copies.empty() && !stage.ties.empty()) {
        throw InputError(
            fmt::format("--plan '{}': network '{}' has a table that two stages share, whose gradient would be summed "
                        "over both and over their copies (not in this version): leave out copies",
                        plan_.text, schedule.network.name));
    }
    const bool has_tables = std::ranges::any_of(
        stage.part.network.layers, [](const Layer& layer) { return rehearse::updates_directly(layer.op); });
    if (has_tables && copies_of(own) > 1) {
        throw InputError(
            fmt::format("--plan '{}': a stage with copies has tables, whose rows each copy would update by its own "
                        "micro-batches alone: give the stage that has them one copy",
                        plan_.text));
    }
    if (as_vectors && !stage.ties.empty()) {
        throw InputError(
            fmt::format("--plan '{}': network '{}' has a table that two stages share; each would have its part of the "
                        "gradient in a "
                        "vector of its own: without pipe, or with gradients that are summed",
                        plan_.text, schedule.network.name));
    }
    if (as_vectors) check_vectors(stage.part, plan_);
    for (const int axis : axes) {
        if (as_vectors) by_samples(axis, schedule.mesh);
    }
    const auto ties = axes_of_ties(stage, own, schedule.mesh);
    stage.part.buckets =
        make_buckets(stage.part.network, wire_type(schedule.precision), plan_.first_bucket, plan_.bucket, axes, begins,
                     ties, as_vectors ? pieces_of(stage.part) : std::vector<bool>{});
    for (const Method* method : methods()) {
        if (method->settle != nullptr) method->settle(stage.part, schedule);
    }
    options_.push_back(std::move(options));
}

int ClassMaker::copies_of(StageIndex stage) const {
    return schedule_.stage_copies.empty() ? 1 : schedule_.stage_copies[at(stage)];
}

std::int64_t ClassMaker::first_place(StageIndex stage) const {
    std::int64_t first = 0;
    for (StageIndex before{0}; before < stage; ++before) first += copies_of(before);
    return first;
}

std::vector<int> ClassMaker::axes_of(const Stage& stage, StageIndex own, bool along_data, Mesh& mesh) const {
    std::vector<int> axes = axes_of_sums(stage.part, mesh, along_data);
    if (copies_of(own) == 1) return axes;
    const int pipe = axis_index(mesh, "pipe");
    const std::int64_t first = first_place(own), last = first + copies_of(own) - 1;
    try {  // none: of what the data axis cuts each rank has a piece of its own
        for (int& axis : axes) axis = with_copies(axis, pipe, first, last, mesh);
    } catch (const InputError& error) {
        throw InputError(fmt::format("--plan '{}': {}", plan_.text, error.what()));
    }
    return axes;
}

RankClass ClassMaker::make(std::int64_t place, std::int64_t batch) const {
    const StagePlace lies = stages() > 1 ? stage_at(schedule_, place) : StagePlace{};
    const StageIndex stage = lies.stage;
    const Stage& of = stages_[at(stage)];
    RankClass made{.name = stages() > 1 ? fmt::format("stage{}", int{stage}) : "all", .part = of.part, .steps = {}};
    made.batch = batch;
    made.copies = lies.copies;
    made.copy = lies.copy;
    if (lies.copies > 1) made.name += fmt::format(":copy{}", lies.copy);
    if (batch > 0) made.name += fmt::format(":batch{}", batch);
    const PipelineShape shape{stages(), schedule_.micro_batches / lies.copies, plan_.chunks, schedule_.stage_copies,
                              plan_.zero == 3};
    const PipelineStrategy& strategy = strategy_of(plan_);
    const StepOptions& options = options_[at(stage)];
    const bool drains = options.asynchronous && !strategy.asynchronous;  // each update is of what all stages have now
    Order order = drains ? one_by_one(shape) : strategy.order(stage, shape);
    for (Item& item : order) item.micro_batch = item.micro_batch * lies.copies + lies.copy;
    make_steps(schedule_, plan_, order, of.chunks, options, made);
    if (!options.asynchronous) check_rows(made, plan_);
    return made;
}

std::vector<std::int64_t> ClassMaker::share_out(std::int64_t batch) const {
    const auto copies = static_cast<std::size_t>(shards(schedule_.mesh));
    const std::vector<std::int64_t>& parts = plan_.shares.parts;
    try {
        if (plan_.shares.balanced) return balanced(batch);
        if (parts.size() != copies) {
            throw InputError(
                fmt::format("shares are of {} copies, and there are {}; NxA stands for N copies with A "
                            "parts each",
                            parts.size(), copies));
        }
        return cut_batch(parts, batch, schedule_.micro_batches);
    } catch (const InputError& error) {
        throw InputError(fmt::format("--plan '{}': {}", plan_.text, error.what()));
    }
}

std::vector<std::int64_t> ClassMaker::balanced(std::int64_t batch) const {
    const std::vector<Places> places = places_of_copies(schedule_, machine_);
    std::map<Places, std::vector<std::size_t>> alike;  // copies on the same classes of devices
    for (std::size_t copy = 0; copy < places.size(); ++copy) alike[places[copy]].push_back(copy);
    std::vector<AlikeCopies> kinds;
    for (const auto& [on, copies] : alike) {
        const auto seconds = [this, &on = on](std::int64_t samples) {
            double longest = 0;
            for (const auto& [stage, device] : on) {
                const std::vector<double> costs = layer_costs(stages_[at(stage)].part, schedule_.precision,
                                                              samples / schedule_.micro_batches, device);
                longest = std::max(longest, std::accumulate(costs.begin(), costs.end(), 0.0) / copies_of(stage));
            }
            return longest;
        };
        const auto fits = [this, &on = on](std::int64_t samples) {
            return std::ranges::all_of(on, [&](const auto& place) {
                const DeviceClass* device = place.second;
                if (device == nullptr || !(device->memory.value > Bytes{0})) return true;
                return total(memory_use(schedule_, make(first_place(place.first), samples))) <= device->memory.value;
            });
        };
        kinds.push_back({static_cast<std::int64_t>(copies.size()), seconds, fits});
    }
    const std::vector<std::int64_t> shares = balance_batch(kinds, batch, schedule_.micro_batches);
    std::vector<std::int64_t> samples(places.size());
    auto next = shares.begin();
    for (const auto& [on, copies] : alike) {
        for (const std::size_t copy : copies) samples[copy] = *next++;
    }
    return samples;
}

}  // namespace rehearse::schedule
