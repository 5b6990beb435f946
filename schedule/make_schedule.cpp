// SPDX-License-Identifier: Apache-2.0
// Whether the plan can be at all; then the strategy that the plan names makes the steps.
#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "core/error.hpp"
#include "schedule/data_parallel.hpp"
#include "schedule/memory.hpp"
#include "schedule/plan.hpp"
#include "schedule/precision.hpp"

namespace rehearse::schedule {

namespace {

/// Devices are taken node after node: how many of each node are used, and why that is uneven, if it is.
struct Placement {
    std::int64_t nodes = 0;
    std::int64_t per_node = 0;  // of the first node
    std::string uneven;
};

Placement place(const Machine& machine, std::int64_t devices) {
    Placement placement;
    std::int64_t left = devices;
    for (const NodeKind& kind : machine.nodes) {
        const std::int64_t each = devices_per_node(kind);
        if (left == 0) break;
        if (each == 0 || kind.count == 0) continue;
        const std::int64_t taken = std::min(left, each * kind.count);
        if (placement.nodes == 0) placement.per_node = std::min(each, taken);
        placement.nodes += (taken + each - 1) / each;
        left -= taken;
        if (placement.nodes == 1) continue;
        if (each != placement.per_node) {
            placement.uneven = fmt::format("some of these nodes have {} devices, others {}", placement.per_node, each);
        } else if (taken % each != 0) {
            placement.uneven = fmt::format(
                "{} % {} = {}: the last node would use {} of its {} devices (take {} or {} "
                "devices)",
                devices, each, devices % each, devices % each, each, devices - devices % each,
                devices - devices % each + each);
        }
    }
    return placement;
}

void check_devices(const Machine& machine, const Job& job) {
    if (job.devices < 1) throw InputError(fmt::format("--devices {}: at least 1 is needed", job.devices));
    const std::int64_t available = device_count(machine);
    if (job.devices > available) {
        throw InputError(fmt::format("--devices {}: {} has only {} (on {} nodes)", job.devices, machine.name, available,
                                     node_count(machine)));
    }
}

/// With one axis, its size is the number of devices; left out, it is inferred.
Mesh make_mesh(const Plan& plan, std::int64_t devices) {
    require(plan.mesh.axes.size() == 1 && plan.mesh.axes.front().name == "data", "parse_plan lets in one axis: data");
    const std::int64_t size = plan.mesh.axes.front().size;
    if (size != 0 && size != devices) {
        throw InputError(
            fmt::format("--plan '{}': data={} makes {} ranks, but --devices is {}; write data={}, or data "
                        "without a size",
                        plan.text, size, size, devices, devices));
    }
    return Mesh{{{"data", devices}}};
}

/// "data:bucket=1MB" as "data=64:bucket=1MB".
std::string with_sizes(const std::string& text, const Mesh& mesh) {
    const Axis& axis = mesh.axes.front();
    if (!text.starts_with(axis.name) || text.substr(axis.name.size()).starts_with('=')) return text;
    return fmt::format("{}={}{}", axis.name, axis.size, text.substr(axis.name.size()));
}

std::int64_t batch_per_rank(const Job& job, std::int64_t data_ranks) {
    constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
    if (!job.global_batch) {
        if (job.batch_per_device < 1) {
            throw InputError(fmt::format("--batch {}: at least 1 sample a device is needed", job.batch_per_device));
        }
        if (job.batch_per_device > most / data_ranks) {
            throw InputError(
                fmt::format("--batch {}: too many samples on {} devices", job.batch_per_device, data_ranks));
        }
        return job.batch_per_device;
    }
    const std::int64_t batch = *job.global_batch;
    if (batch < 1) throw InputError(fmt::format("--global-batch {}: at least 1 sample is needed", batch));
    if (batch % data_ranks != 0) {
        const std::int64_t below = batch - batch % data_ranks;
        const bool has_above = below <= most - data_ranks;
        const std::string above = has_above ? fmt::format("{}", below + data_ranks) : "";
        const std::string would_do = below == 0 ? above : fmt::format("{}{}{}", below, has_above ? " or " : "", above);
        throw InputError(fmt::format("--global-batch {} cannot be divided by data={} ({} % {} = {}); {} would do",
                                     batch, data_ranks, batch, data_ranks, batch % data_ranks, would_do));
    }
    return batch / data_ranks;
}

Algorithm choose_all_reduce(const Plan& plan, const Placement& placement) {
    if (!plan.all_reduce) {
        if (placement.nodes > 1 && placement.uneven.empty()) return {"hierarchical", "ring", "halving"};
        return {"ring", {}, {}};
    }
    if (plan.all_reduce->name == "hierarchical" && !placement.uneven.empty()) {
        throw InputError(
            fmt::format("--plan '{}': a hierarchical all-reduce needs the same number of ranks on each "
                        "node, but {}, or choose another all-reduce",
                        plan.text, placement.uneven));
    }
    return *plan.all_reduce;
}

}  // namespace

Schedule make_schedule(const Network& network, const Machine& machine, const Plan& plan, const Job& job) {
    check_devices(machine, job);
    Schedule schedule;
    schedule.mesh = make_mesh(plan, job.devices);
    schedule.batch_per_rank = batch_per_rank(job, job.devices);
    check(network);
    if (parameters(network) == 0) {
        throw InputError(fmt::format("network '{}' has no weights: there is nothing to train", network.name));
    }
    const GradientSum sum{0, choose_all_reduce(plan, place(machine, job.devices)), plan.overlap};

    schedule.network = network;
    schedule.plan = with_sizes(plan.text, schedule.mesh);
    schedule.precision = job.precision;
    schedule.buckets = make_buckets(network, wire_type(job.precision), plan.first_bucket, plan.bucket);
    schedule.classes.push_back({"all", data_parallel_steps(schedule, sum)});
    schedule.memory_peak = total(memory_use(schedule));
    check(schedule);
    return schedule;
}

}  // namespace rehearse::schedule
