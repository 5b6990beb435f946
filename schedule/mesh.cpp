// SPDX-License-Identifier: Apache-2.0
#include "schedule/mesh.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <numeric>

#include "core/collectives/between_nodes.hpp"
#include "core/collectives/library.hpp"
#include "core/error.hpp"
#include "core/methods/servers.hpp"
#include "core/op.hpp"
#include "models/mpi_libraries.hpp"
#include "schedule/own_library.hpp"

namespace rehearse::schedule {

namespace {

/// Devices are taken node after node: how many of each node are used, and why that is uneven, if it is.
struct Placement {
    std::int64_t nodes = 0;
    std::int64_t per_node = 0;  // of the first node
    bool alike = true;          // all but the last have as many
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
            placement.alike = false;
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

/// Sizes multiplied by `elements`, which stops at the largest number.
std::string counted(std::int64_t product) {
    return product < std::numeric_limits<std::int64_t>::max() ? fmt::format("{}", product) : "2^63 - 1 or more";
}

/// "data=4,pipe=2 makes 8 ranks".
std::string product_text(const Mesh& mesh, std::int64_t product) {
    std::string text;
    for (const Axis& axis : mesh.axes) {
        text += fmt::format("{}{}={}", text.empty() ? "" : ",", axis.name, axis.size);
    }
    return fmt::format("{} makes {} ranks", text, counted(product));
}

std::int64_t divided(std::int64_t batch, std::int64_t data_ranks) {
    if (batch < 1 || batch > most_samples) {
        throw InputError(fmt::format(
            "--global-batch {}: {}", batch,
            batch < 1 ? "at least 1 sample is needed" : fmt::format("a step has at most {} samples", most_samples)));
    }
    if (batch % data_ranks != 0) {
        throw InputError(fmt::format("--global-batch {} cannot be divided by data={} ({} % {} = {}); {} would do",
                                     batch, data_ranks, batch, data_ranks, batch % data_ranks,
                                     multiples_beside(batch, data_ranks)));
    }
    return batch / data_ranks;
}

/// Whether each group along an axis has nodes of its own, with as many of its ranks on each, several, or fewer on the
/// last one of all.
bool has_whole_nodes(const Placement& placement, const Mesh& mesh, int axis) {
    if (is_partial(mesh, axis) || placement.nodes < 2 || !placement.alike) return false;
    const std::int64_t apart = stride(mesh, axis), block = apart * size_of(mesh, axis);
    return placement.per_node % apart == 0 && placement.per_node / apart > 1 &&
           (block % placement.per_node == 0 || block == ranks(mesh));
}

Algorithm default_all_reduce(const Machine& machine, const Placement& placement, const Mesh& mesh, int axis) {
    if (is_partial(mesh, axis)) return {"ring", {}, {}};  // its ranks lie on nodes as they come
    if (sums_in_switches(machine, mesh, axis)) return {"direct", {}, {}};
    const std::int64_t apart = stride(mesh, axis);
    const std::int64_t mates = placement.per_node / apart;
    const bool even = placement.uneven.empty() && placement.per_node % apart == 0 &&
                      size_of(mesh, axis) % std::max<std::int64_t>(mates, 1) == 0;
    const bool alone = size_of(mesh, axis) < ranks(mesh) && mates < 2;
    if (placement.nodes > 1 && even && !alone) return {"hierarchical", "ring", {}};
    return {has_whole_nodes(placement, mesh, axis) ? "rings" : "ring", {}, {}};
}

}  // namespace

Mesh make_mesh(const Plan& plan, std::int64_t devices) {
    Mesh mesh = plan.mesh;
    if (const std::int64_t apart = plan.methods.get<Servers>().shared ? 0 : plan.methods.get<Servers>().count;
        apart > 0) {
        if (apart >= devices) {
            throw InputError(
                fmt::format("--plan '{}': {} servers leave none of {} devices to train on", plan.text, apart, devices));
        }
        devices -= apart;
    }
    std::int64_t product = 1;
    Axis* open = nullptr;
    for (Axis& axis : mesh.axes) {
        if (axis.size != 0) {
            product = elements({product, axis.size});
        } else if (open != nullptr) {
            throw InputError(fmt::format("--plan '{}': {} and {} have no size; only one can be inferred", plan.text,
                                         open->name, axis.name));
        } else {
            open = &axis;
        }
    }
    if (open != nullptr && devices % product == 0) {
        open->size = devices / product;
        return mesh;
    }
    if (open != nullptr) {
        throw InputError(fmt::format("--plan '{}': --devices {} cannot be divided by {}, so that {} has no size",
                                     plan.text, devices, counted(product), open->name));
    }
    if (product == devices) return mesh;
    if (mesh.axes.size() > 1) {
        throw InputError(fmt::format("--plan '{}': {}, but --devices is {}; leave out one size to have it inferred",
                                     plan.text, product_text(mesh, product), devices));
    }
    const Axis& axis = mesh.axes.front();
    throw InputError(fmt::format("--plan '{}': {}, but --devices is {}; write {}={}{}, or --devices {}", plan.text,
                                 product_text(mesh, product), devices, axis.name, devices,
                                 plan.cut_by_blocks ? " where as many stages share the network's blocks evenly" : "",
                                 counted(product)));
}

std::string with_sizes(const Plan& plan, const Mesh& mesh) {
    std::string text = plan.text;
    for (const Axis& axis : plan.mesh.axes) {
        if (axis.size != 0) continue;
        // An axis's name begins the text or follows a comma, and a size would follow it at once.
        std::size_t at = text.find(axis.name);
        while (at != 0 && text[at - 1] != ',') at = text.find(axis.name, at + 1);
        text.insert(at + axis.name.size(), fmt::format("={}", axis_size(mesh, axis.name)));
    }
    return text;
}

std::int64_t axis_size(const Mesh& mesh, std::string_view name) {
    const int axis = axis_index(mesh, name);
    return axis < 0 ? 1 : mesh.axes[static_cast<std::size_t>(axis)].size;
}

std::string multiples_beside(std::int64_t batch, std::int64_t of) {
    const std::int64_t below = batch - batch % of;
    const std::string above = below <= most_samples - of ? fmt::format("{}", below + of) : "";
    if (below == 0) return above;
    return fmt::format("{}{}{}", below, above.empty() ? "" : " or ", above);
}

std::int64_t batch_per_rank(const Job& job, std::int64_t data_ranks, int micro_batches) {
    if (!job.global_batch && job.batch_per_device < 1) {
        throw InputError(fmt::format("--batch {}: at least 1 sample a device is needed", job.batch_per_device));
    }
    if (!job.global_batch && job.batch_per_device > most_samples / data_ranks) {
        throw InputError(fmt::format("--batch {}: too many samples on {} copies of the network: a step has at most {}",
                                     job.batch_per_device, data_ranks, most_samples));
    }
    const std::int64_t batch = job.global_batch ? divided(*job.global_batch, data_ranks) : job.batch_per_device;
    if (batch % micro_batches != 0) {
        throw InputError(
            fmt::format("{} sample{} cannot be cut into {} equal micro-batches ({} % {} = {}); {} would do, or "
                        "microbatches={}",
                        batch, batch == 1 ? "" : "s", micro_batches, batch, micro_batches, batch % micro_batches,
                        multiples_beside(batch, micro_batches), std::gcd(batch, micro_batches)));
    }
    return batch;
}

bool sums_in_switches(const Machine& machine, const Mesh& mesh, int axis) {
    const std::int64_t block = stride(mesh, axis) * size_of(mesh, axis);
    return size_of(mesh, axis) > 2 && std::ranges::all_of(machine.nodes, [&](const NodeKind& kind) {
               const std::int64_t each = devices_per_node(kind);
               return !kind.sums.rate.source.empty() && (each % block == 0 || ranks(mesh) <= each);
           });
}

Algorithm choose_all_reduce(const Plan& plan, const Machine& machine, const Mesh& mesh, int axis) {
    const Placement placement = place(machine, ranks(mesh));
    const bool open =
        !plan.all_reduce || plan.all_reduce->name == "auto" || models::is_mpi_library(plan.all_reduce->name);
    if (open) return default_all_reduce(machine, placement, mesh, axis);
    if (plan.all_reduce->name == own_library) return {};  // until settle_own_library
    if (plan.all_reduce->name == "hierarchical" && !placement.uneven.empty()) {
        throw InputError(
            fmt::format("--plan '{}': a hierarchical all-reduce needs the same number of ranks on each "
                        "node, but {}, or choose another all-reduce",
                        plan.text, placement.uneven));
    }
    return *plan.all_reduce;
}

Algorithm settled(Algorithm sums, const Machine& machine, const Mesh& mesh, int axis, Bytes whole) {
    if (!is_open(sums)) return sums;
    const std::int64_t mates = std::max<std::int64_t>(1, place(machine, ranks(mesh)).per_node / stride(mesh, axis));
    sums.across = usual_between_nodes(machine, size_of(mesh, axis) / mates, mates, whole);
    return sums;
}

Algorithm choose_halves(const std::optional<Algorithm>& sums, const Machine& machine, const Mesh& mesh, int axis) {
    const std::string_view named = sums ? std::string_view{sums->name} : "";
    if (named == "ring" || named == "rings") return *sums;
    if (of_library(named)) return {.name = sums->name, .across = sums->across};  // by trees nothing is scattered
    if (named == own_library || models::is_mpi_library(named)) return {};
    return {has_whole_nodes(place(machine, ranks(mesh)), mesh, axis) ? "rings" : "ring", {}, {}};
}

Algorithm choose_layer_sum(const Plan& plan, const Machine& machine, const Mesh& mesh) {
    const int axis = axis_index(mesh, "tensor");
    if (plan.tensor_sum || axis < 0) return plan.tensor_sum.value_or(Algorithm{});
    const Placement placement = place(machine, ranks(mesh));
    const bool inside = size_of(mesh, axis) * stride(mesh, axis) <= placement.per_node;
    if (inside && !sums_in_switches(machine, mesh, axis)) return {};
    return default_all_reduce(machine, placement, mesh, axis);
}

}  // namespace rehearse::schedule
