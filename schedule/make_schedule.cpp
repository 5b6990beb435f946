// SPDX-License-Identifier: Apache-2.0
// Whether the plan can be at all; then each axis of the mesh does its part: tensor cuts layers, pipe cuts the list of
// layers, data adds sums of gradients.
#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <optional>
#include <utility>

#include "core/error.hpp"
#include "core/index.hpp"
#include "core/methods/memory_habits.hpp"
#include "core/precision.hpp"
#include "schedule/axes/axis.hpp"
#include "schedule/axes/experts.hpp"
#include "schedule/axes/room.hpp"
#include "schedule/axes/tensor.hpp"
#include "schedule/compatibility.hpp"
#include "schedule/costs.hpp"
#include "schedule/cuts.hpp"
#include "schedule/library_choice.hpp"
#include "schedule/memory.hpp"
#include "schedule/memory_of_software.hpp"
#include "schedule/mesh.hpp"
#include "schedule/methods/method.hpp"
#include "schedule/own_library.hpp"
#include "schedule/plan.hpp"
#include "schedule/plan_words.hpp"
#include "schedule/rank_classes.hpp"

namespace rehearse::schedule {

namespace {

// Of all layers and micro-batches of a step: some 5 GB of memory.
constexpr std::int64_t most_passes = 5'000'000;

void check_devices(const Machine& machine, const Job& job) {
    if (job.devices < 1) throw InputError(fmt::format("--devices {}: at least 1 is needed", job.devices));
    const std::int64_t available = device_count(machine);
    if (job.devices > available) {
        throw InputError(fmt::format("--devices {}: {} has only {} (on {} nodes)", job.devices, machine.name, available,
                                     node_count(machine)));
    }
}

/// Micro-batches after which all copies of all stages have had as many.
std::int64_t whole_turns(const Plan& plan) {
    std::int64_t all = 1;
    for (const int copies : plan.stage_copies) all = std::lcm(all, std::int64_t{copies});
    return all;
}

int micro_batches(const Plan& plan, std::int64_t ranks, std::int64_t batch) {
    const std::int64_t turns = whole_turns(plan);
    std::int64_t count = plan.micro_batches > 0 ? plan.micro_batches : (ranks + turns - 1) / turns * turns;
    if (plan.micro_batch > 0) {
        if (batch % plan.micro_batch != 0) {
            throw InputError(fmt::format("--plan '{}': a batch of {} is not in parts of {} samples", plan.text, batch,
                                         plan.micro_batch));
        }
        count = batch / plan.micro_batch;
    }
    if (count > most_micro_batches) {
        throw InputError(
            fmt::format("--plan '{}': {} micro-batches; a step has at most {}", plan.text, count, most_micro_batches));
    }
    if (count % turns != 0) {
        throw InputError(
            fmt::format("--plan '{}': copies={} take turns over {} micro-batches, of which some would have more than "
                        "others; multiples of {} would do",
                        plan.text, fmt::join(plan.stage_copies, "+"), count, turns));
    }
    if (plan.pipeline != "interleaved") return static_cast<int>(count);
    if (ranks == 1) {
        throw InputError(
            fmt::format("--plan '{}': schedule=interleaved needs at least 2 stages, and pipe has 1", plan.text));
    }
    if (count % ranks != 0) {
        throw InputError(
            fmt::format("--plan '{}': schedule=interleaved takes micro-batches in groups of pipe={}, but "
                        "{} % {} = {}",
                        plan.text, ranks, count, ranks, count % ranks));
    }
    return static_cast<int>(count);
}

/// The plan without ZeRO where no rank holds the weights of another one: there is nothing to share.
Plan without_idle_zero(Plan plan, const Mesh& mesh) {
    const bool several = !plan.stage_copies.empty() || std::ranges::any_of(mesh.axes, [](const Axis& axis) {
        return axis.size > 1 && axis.name != "pipe" && axis.name != "tensor";
    });
    if (!several) plan.zero = 0;
    return plan;
}

/// Whether two stages that share a table sum its gradient: once a step, of the whole table.
bool ties_tables(const Plan& plan) { return plan.zero < 3 && !strategy_of(plan).asynchronous; }

/// Whether this layer of a part has weights of a layer of the whole that an earlier one has weights of, too.
bool goes_on(const Part& part, int i) {
    const auto has_weights_of = [&](int layer, int of_whole) {
        return part.origins[at(layer)].layer == of_whole && weights_read(part.network.layers[at(layer)].op) > 0;
    };
    const int whole = part.origins[at(i)].layer;
    if (whole < 0 || !has_weights_of(i, whole)) return false;
    for (int before = 0; before < i; ++before) {
        if (has_weights_of(before, whole)) return true;
    }
    return false;
}

/// Where stages update on their own, a layer's weights (a product's and its bias, which tensor parallelism makes two
/// layers of) must be in one of them.
std::vector<int> with_whole_layers(const Part& part, std::vector<int> ends) {
    const auto layers = static_cast<int>(part.network.layers.size());
    for (std::size_t stage = 0; stage + 1 < ends.size(); ++stage) {
        while (ends[stage] + 1 < ends[stage + 1] && ends[stage] < layers && goes_on(part, ends[stage])) ++ends[stage];
    }
    return ends;
}

std::vector<Stage> make_stages(const Part& part, std::span<const int> given, const Plan& plan,
                               const Schedule& schedule) {
    const auto layers = static_cast<int>(part.network.layers.size());
    if (given.empty()) return {{part, {{0, layers}}}};
    std::vector<int> ends{given.begin(), given.end()};
    if (strategy_of(plan).asynchronous) ends = with_whole_layers(part, std::move(ends));
    const Scatter scatter{.axis = "tensor", .parts = plan.scatter ? axis_size(schedule.mesh, "tensor") : 1};
    return cut_stages(part, ends, stages(schedule), "pipe", ties_tables(plan), scatter);
}

void check_precision(const Network& network, Precision precision) {
    const auto is_product = [&](const Layer& layer) { return compute_type(precision, layer.op) == DataType::fp8; };
    if (precision == Precision::fp8 && std::ranges::none_of(network.layers, is_product)) {
        throw InputError(
            fmt::format("network '{}' has no dense layer whose sizes are multiples of 16, which --precision "
                        "fp8 is for: choose bf16",
                        network.name));
    }
}

void keep_attention(Network& network) {
    for (Layer& layer : network.layers) {
        if (auto* attention = std::get_if<Attention>(&layer.op)) attention->kept = true;
    }
}

/// What `inner` makes of the layers of `outer`, as a part of the whole network.
Part composed(const Part& outer, Part inner) {
    for (Origin& origin : inner.origins) {
        if (origin.layer < 0) continue;
        const Origin& before = outer.origins[at(origin.layer)];
        origin.layer = before.layer;
        if (before.layer < 0) continue;
        origin.tensor += before.tensor;
        for (Cut& cut : origin.cuts) cut.tensor += before.tensor;
        origin.cuts.insert(origin.cuts.begin(), before.cuts.begin(), before.cuts.end());
        origin.summed.insert(origin.summed.begin(), before.summed.begin(), before.summed.end());
        origin.transposed = origin.transposed != before.transposed;
    }
    std::vector<std::string>& notes = inner.network.notes;
    notes.insert(notes.begin(), outer.network.notes.begin(), outer.network.notes.end());
    return inner;
}

/// What a rank computes before stages are cut: one axis after the other cuts what is left of the network.
Part part_of(const Network& network, const Plan& plan, Mesh& mesh) {
    Part part = whole(network);
    for (const bool last : {false, true}) {
        for (const PlanAxis* axis : axes()) {
            if (axis->cut == nullptr || axis->cuts_last != last) continue;
            if (std::optional<Part> next = axis->cut(part.network, plan, mesh)) part = composed(part, *std::move(next));
        }
    }
    return part;
}

/// Of all copies in a step.
std::int64_t all_samples(const Job& job, std::int64_t copies) {
    Job even = job;
    even.global_batch.reset();
    if (!job.global_batch) return copies * batch_per_rank(even, copies, 1);
    if (*job.global_batch < 1) {
        throw InputError(fmt::format("--global-batch {}: at least 1 sample is needed", *job.global_batch));
    }
    return *job.global_batch;
}

/// Fills in the shares; the samples of each kind of them, or 0 where all turn out alike.
std::vector<std::int64_t> share_out(const ClassMaker& maker, std::int64_t batch, Schedule& schedule) {
    const std::vector<std::int64_t> samples = maker.share_out(batch);
    schedule.batch_per_rank = std::ranges::max(samples);
    schedule.shares = shares_of(samples);
    if (schedule.shares.samples.empty()) return {0};
    schedule.class_axes.push_back(axis_index(schedule.mesh, "data"));
    std::vector<std::int64_t> kinds;
    for (std::size_t copy = 0; copy < samples.size(); ++copy) {
        if (schedule.shares.kind[copy] == static_cast<int>(kinds.size())) kinds.push_back(samples[copy]);
    }
    return kinds;
}

/// The schedule with the programs of its ranks.
Schedule with_classes(Schedule schedule, std::vector<Stage> stages, const Plan& plan, const Machine& machine,
                      const Job& job) {
    const std::int64_t copies = shards(schedule.mesh);
    const ClassMaker maker{schedule, plan, machine, std::move(stages)};
    if (maker.stages() > 1) schedule.class_axes.push_back(axis_index(schedule.mesh, "pipe"));
    std::vector<std::int64_t> batches{0};  // of the classes of each stage
    if (plan.shares != BatchShares{}) batches = share_out(maker, all_samples(job, copies), schedule);
    const std::int64_t places = maker.stages() > 1 ? axis_size(schedule.mesh, "pipe") : 1;
    for (std::int64_t place = 0; place < places; ++place) {
        for (const std::int64_t batch : batches) schedule.classes.push_back(maker.make(place, batch));
    }
    check_groups(schedule);
    schedule.memory_peak = total(memory_use(schedule));
    check(schedule);
    return schedule;
}

}  // namespace

Schedule make_schedule(const Network& network, const Machine& machine, const Plan& asked, const Job& job) {
    check_devices(machine, job);
    check_job(asked, job);
    Schedule schedule;
    schedule.mesh = make_mesh(asked, job.devices);
    const Plan plan = without_idle_zero(asked, schedule.mesh);
    schedule.stage_copies = plan.stage_copies;
    const std::int64_t in_pipe = axis_size(schedule.mesh, "pipe");
    const std::int64_t copies = shards(schedule.mesh);
    if (plan.shares == BatchShares{}) {
        schedule.micro_batches = micro_batches(plan, in_pipe, batch_per_rank(job, copies, 1));
        schedule.batch_per_rank = batch_per_rank(job, copies, schedule.micro_batches);
    } else {  // until the shares are known: stages are balanced by what a copy has on average
        schedule.micro_batches = micro_batches(plan, in_pipe, 1);
        const std::int64_t parts = copies * schedule.micro_batches;
        schedule.batch_per_rank = std::max<std::int64_t>(1, all_samples(job, copies) / parts) * schedule.micro_batches;
    }
    check(network);
    if (schedule.micro_batches > most_passes / std::ssize(network.layers)) {
        throw InputError(
            fmt::format("--plan '{}': {} micro-batches through {} layers are more than the {} passes that a "
                        "schedule holds",
                        plan.text, schedule.micro_batches, network.layers.size(), most_passes));
    }
    if (parameters(network) == 0) {
        throw InputError(fmt::format("network '{}' has no weights: there is nothing to train", network.name));
    }
    check_precision(network, job.precision);
    schedule.network = network;
    const MemoryHabits habits = habits_of(plan, machine);
    if (keeps_probabilities(plan, habits)) keep_attention(schedule.network);
    schedule.plan = with_sizes(plan, schedule.mesh);
    schedule.precision = job.precision;
    schedule.optimizer = job.optimizer;
    schedule.methods = plan.methods;
    schedule.methods.edit<MemoryHabits>() = habits;
    for (const Method* method : methods()) {
        if (method->describe != nullptr) method->describe(plan, schedule);
    }

    const Part part = part_of(schedule.network, plan, schedule.mesh);
    schedule.network.notes = part.network.notes;
    const auto made = [&](std::span<const int> ends) {
        Schedule one = with_classes(schedule, make_stages(part, ends, plan, schedule), plan, machine, job);
        settle_library_choice(plan, machine, one);
        settle_own_library(plan, machine, one);
        settle_between_nodes(machine, one);
        return one;
    };
    const std::vector<int> ends = cuts_of(schedule.network, part, plan, schedule, machine);
    Schedule balanced = made(ends);
    const bool given = plan.cut_by_blocks || !plan.cuts.empty();
    if (stages(schedule) == 1 || plan.chunks > 1 || given || machine.classes.empty()) return balanced;
    const PieceCosts costs = costs_of_pieces(part, plan, schedule, machine);
    const auto within = [&](const Room& room) { return fastest_cut(part, costs, plan, schedule, room); };
    return with_room(std::move(balanced), ends, part, machine, within, made);
}

}  // namespace rehearse::schedule
