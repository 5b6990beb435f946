// SPDX-License-Identifier: Apache-2.0
// Whether the plan can be at all; then each axis of the mesh does its part: tensor cuts layers, pipe cuts the list of
// layers, data adds sums of gradients.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "core/curvature.hpp"
#include "core/error.hpp"
#include "core/precision.hpp"
#include "core/prices.hpp"
#include "schedule/blocks.hpp"
#include "schedule/buckets.hpp"
#include "schedule/memory.hpp"
#include "schedule/mesh.hpp"
#include "schedule/plan.hpp"
#include "schedule/servers.hpp"
#include "schedule/spatial.hpp"
#include "schedule/steps.hpp"
#include "schedule/tables.hpp"
#include "schedule/tensor.hpp"
#include "schedule/weird_trick.hpp"

namespace rehearse::schedule {

namespace {

void check_devices(const Machine& machine, const Job& job) {
    if (job.devices < 1) throw InputError(fmt::format("--devices {}: at least 1 is needed", job.devices));
    const std::int64_t available = device_count(machine);
    if (job.devices > available) {
        throw InputError(fmt::format("--devices {}: {} has only {} (on {} nodes)", job.devices, machine.name, available,
                                     node_count(machine)));
    }
}

int micro_batches(const Plan& plan, std::int64_t stages, std::int64_t batch) {
    int count = plan.micro_batches > 0 ? plan.micro_batches : static_cast<int>(stages);
    if (plan.micro_batch > 0) {
        if (batch % plan.micro_batch != 0) {
            throw InputError(fmt::format("--plan '{}': a batch of {} is not in parts of {} samples", plan.text, batch,
                                         plan.micro_batch));
        }
        count = static_cast<int>(batch / plan.micro_batch);
    }
    if (plan.pipeline == "interleaved" && count % stages != 0) {
        throw InputError(
            fmt::format("--plan '{}': schedule=interleaved takes micro-batches in groups of pipe={}, but "
                        "{} % {} = {}",
                        plan.text, stages, count, stages, count % stages));
    }
    return count;
}

/// What one micro-batch costs in each layer on a device: by price where it has prices, else by operations.
std::vector<double> layer_costs(const Part& part, const Schedule& schedule, const DeviceClass* device) {
    if (device != nullptr && device->peak.empty() && device->measured.empty()) device = nullptr;
    std::vector<double> costs;
    for (const Layer& layer : part.network.layers) {
        double cost = 0;
        for (const Pass pass : {Pass::forward, Pass::backward_data, Pass::backward_weights}) {
            if (!has_pass(layer.op, pass)) continue;
            const Problem problem{layer.op, pass, micro_batch_size(schedule), compute_type(schedule.precision)};
            cost += device == nullptr ? flops(layer.op, pass).value : price(problem, *device).time.value;
        }
        costs.push_back(cost);
    }
    return costs;
}

/// The classes of devices on which a stage's ranks are.
std::set<const DeviceClass*> devices_of(int stage, const Schedule& schedule, const Machine& machine) {
    if (machine.classes.empty()) return {nullptr};
    if (machine.classes.size() == 1) return {&rehearse::class_of(machine, 0)};
    std::set<const DeviceClass*> devices;
    const int pipe = axis_index(schedule.mesh, "pipe");
    for (std::int64_t rank = 0; rank < ranks(schedule.mesh); ++rank) {
        if (pipe < 0 || place_on(schedule.mesh, pipe, rank) == stage)
            devices.insert(&rehearse::class_of(machine, rank));
    }
    return devices;
}

/// Of each layer on each piece of the pipeline: piece c * stages + s is on stage s, whose slowest device counts.
std::vector<std::vector<double>> costs_of_pieces(const Part& part, const Plan& plan, const Schedule& schedule,
                                                 const Machine& machine) {
    const auto stages = static_cast<int>(axis_size(schedule.mesh, "pipe"));
    std::map<const DeviceClass*, std::vector<double>> on_device;
    std::vector<std::vector<double>> costs;
    for (int piece = 0; piece < stages * plan.chunks; ++piece) {
        std::vector<double>& worst = costs.emplace_back(part.network.layers.size());
        for (const DeviceClass* device : devices_of(piece % stages, schedule, machine)) {
            const auto [known, fresh] = on_device.try_emplace(device);
            if (fresh) known->second = layer_costs(part, schedule, device);
            std::ranges::transform(worst, known->second, worst.begin(),
                                   [](double a, double b) { return std::max(a, b); });
        }
    }
    return costs;
}

std::vector<Stage> make_stages(Part part, const Plan& plan, const Schedule& schedule, const Machine& machine) {
    const auto stages = static_cast<int>(axis_size(schedule.mesh, "pipe"));
    const auto layers = static_cast<int>(part.network.layers.size());
    if (stages == 1 && plan.chunks == 1) return {{std::move(part), {{0, layers}}}};
    try {
        const std::vector<int> ends = plan.cut_by_blocks ? even_blocks(part.network, stages * plan.chunks)
                                                         : balance(costs_of_pieces(part, plan, schedule, machine));
        return cut_stages(part, ends, stages, "pipe");
    } catch (const InputError& error) {
        throw InputError(fmt::format("--plan '{}': network '{}': {}", plan.text, part.network.name, error.what()));
    }
}

/// The axes that cut images, and the one that they make together.
Part share_images(const Network& network, const Plan& plan, Mesh& mesh) {
    std::vector<SpatialAxis> axes;
    for (std::size_t dim = 0; dim < spatial_axes.size(); ++dim) {
        const int index = axis_index(mesh, spatial_axes[dim]);
        if (index < 0 || size_of(mesh, index) == 1) continue;
        axes.push_back({spatial_axes[dim], index, size_of(mesh, index), static_cast<std::int64_t>(dim) + 1});
    }
    if (axes.empty()) return whole(network);
    const int grid = join(mesh, axes.front().index, axes.back().index);
    try {
        return split_spatial(network, axes, name_of(mesh, grid));
    } catch (const InputError& error) {
        throw InputError(fmt::format("--plan '{}': {}", plan.text, error.what()));
    }
}

Part part_of(const Network& network, const Plan& plan, Mesh& mesh) {
    const std::int64_t tensor = axis_size(mesh, "tensor"), data = axis_size(mesh, "data");
    if (plan.share_dense && data > 1) return share_dense_layers(network, "data", axis_index(mesh, "data"), data);
    if (plan.share_tables) return share_tables(network, "data", axis_index(mesh, "data"), data);
    if (tensor == 1) return share_images(network, plan, mesh);
    return split_tensor(network, {"tensor", axis_index(mesh, "tensor"), tensor, plan.sequence});
}

const PipelineStrategy& strategy_of(const Plan& plan) {
    const auto strategy = std::ranges::find(pipeline_strategies(), plan.pipeline, &PipelineStrategy::name);
    require(strategy != pipeline_strategies().end(), "a pipeline schedule that parse_plan accepted");
    return *strategy;
}

}  // namespace

Schedule make_schedule(const Network& network, const Machine& machine, const Plan& plan, const Job& job) {
    check_devices(machine, job);
    Schedule schedule;
    schedule.mesh = make_mesh(plan, job.devices);
    const std::int64_t stages = axis_size(schedule.mesh, "pipe");
    const std::int64_t copies = shards(schedule.mesh);
    schedule.micro_batches = micro_batches(plan, stages, batch_per_rank(job, copies, 1));
    schedule.batch_per_rank = batch_per_rank(job, copies, schedule.micro_batches);
    check(network);
    if (parameters(network) == 0) {
        throw InputError(fmt::format("network '{}' has no weights: there is nothing to train", network.name));
    }
    schedule.network = network;
    schedule.plan = with_sizes(plan, schedule.mesh);
    schedule.precision = job.precision;
    schedule.optimizer = job.optimizer;
    schedule.lag = plan.lag;
    schedule.control = plan.control;
    schedule.whole_variables = plan.whole_variables;
    schedule.averaging = plan.averaging;
    if (plan.averaging.learners > 1 && !(plan.averaging.elastic > 0)) {
        schedule.averaging.elastic = 1.0 / static_cast<double>(plan.averaging.learners * copies);
    }
    schedule.compression = plan.compression;
    schedule.servers = plan.servers;
    if (job.optimizer == Optimizer::lamb && plan.zero > 0) {
        throw InputError(
            fmt::format("--plan '{}': with zero={} a rank updates a piece of the weights, but LAMB needs the "
                        "norms of whole tensors; choose --optimizer adam, or no zero",
                        plan.text, plan.zero));
    }

    if (plan.share_tables && job.optimizer != Optimizer::sgd) {
        throw InputError(
            fmt::format("--plan '{}': tables=shared updates rows by plain SGD; choose --optimizer sgd", plan.text));
    }
    if (plan.all_reduce && !is_sum(*plan.all_reduce) && wire_type(job.precision) != DataType::f32) {
        throw InputError(
            fmt::format("--plan '{}': allreduce=adasum combines gradients in f32; choose --precision fp32", plan.text));
    }

    StepOptions options{
        .sum = {.overlap = plan.overlap,
                .zero = plan.zero,
                .wire = plan.compress.value_or(wire_type(job.precision)),
                .lag = plan.lag},
        .tensor = plan.tensor_sum.value_or(Algorithm{}),
        .recompute = plan.recompute,
        .asynchronous = strategy_of(plan).asynchronous || plan.averaging.period > 0 || plan.curvature.period > 1};
    std::vector<Stage> made = make_stages(part_of(network, plan, schedule.mesh), plan, schedule, machine);
    if (stages > 1) schedule.class_axes.push_back(axis_index(schedule.mesh, "pipe"));
    for (std::size_t s = 0; s < made.size(); ++s) {
        RankClass stage{
            .name = stages > 1 ? fmt::format("stage{}", s) : "all", .part = std::move(made[s].part), .steps = {}};
        const bool alone = plan.servers.count > 0 && axis_index(schedule.mesh, "groups") < 0;
        const std::vector<int> axes = axes_of_sums(stage.part, schedule.mesh, !alone);
        for (const int axis : axes) {
            if (axis >= 0) options.sum.algorithms[axis] = choose_all_reduce(plan, machine, schedule.mesh, axis);
        }
        // The chunks of an interleaved stage take other micro-batches in between, so what is summed after each of these
        // (zero=3) is of one chunk.
        std::vector<int> begins;
        for (const Chunk& chunk : made[s].chunks) {
            if (plan.zero == 3) begins.push_back(chunk.begin);
        }
        if (plan.curvature.period > 0) begins = preconditioned_alone(stage.part.network);
        if (plan.send_vectors) begins = alone_in_buckets(stage.part.network, schedule.batch_per_rank);
        stage.part.buckets =
            make_buckets(stage.part.network, wire_type(job.precision), plan.first_bucket, plan.bucket, axes, begins);
        schedule.curvature = plan.curvature;
        if (plan.curvature.period > 0) schedule.curvature.owners = owners_of(stage.part, copies);
        if (plan.servers.count > 0) {
            options.server_of = servers_of(stage.part.buckets, plan.servers.count);
            options.vectors = with_vectors(plan.send_vectors, stage.part, schedule.batch_per_rank);
        }
        const PipelineShape shape{static_cast<int>(stages), schedule.micro_batches, plan.chunks};
        make_steps(schedule, strategy_of(plan).order(static_cast<int>(s), shape), made[s].chunks, options, stage);
        schedule.classes.push_back(std::move(stage));
    }
    schedule.memory_peak = total(memory_use(schedule));
    check(schedule);
    return schedule;
}

}  // namespace rehearse::schedule
