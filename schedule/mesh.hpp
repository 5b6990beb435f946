// SPDX-License-Identifier: Apache-2.0
// From the axes of a plan to a mesh on a machine's devices.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "core/machine.hpp"
#include "schedule/plan.hpp"

namespace rehearse::schedule {

/// Samples of one step, of all ranks: more than anybody trains with, and products with sizes of layers fit 64 bits.
inline constexpr std::int64_t most_samples = 1'000'000'000;

/// The plan's axes with the one that has no size inferred. InputError when their product is not `devices`.
Mesh make_mesh(const Plan& plan, std::int64_t devices);

/// The plan's text with the inferred size written in: "data:bucket=1MB" as "data=64:bucket=1MB".
std::string with_sizes(const Plan& plan, const Mesh& mesh);

/// Size of an axis; 1 when the mesh has none of that name.
std::int64_t axis_size(const Mesh& mesh, std::string_view name);

/// Multiples of `of` beside `batch`, as many samples as a step may have: "9 or 12".
std::string multiples_beside(std::int64_t batch, std::int64_t of);

/// Samples that each rank along the data axis works on in a step. InputError unless --batch or --global-batch can be
/// divided so, into `micro_batches` equal parts.
std::int64_t batch_per_rank(const Job& job, std::int64_t data_ranks, int micro_batches);

/// Whether ranks along an axis always share a node whose switches sum (SwitchSums), and are three or more: there NCCL
/// leaves sums to them. Of two, all data and half the sum cross each link, where a ring sends no more than all data.
bool sums_in_switches(const Machine& machine, const Mesh& mesh, int axis);

/// How gradients are summed along an axis: what the plan says; else direct where switches sum, hierarchical with a ring
/// inside nodes where each of several nodes holds several of the ranks that sum, rings where the last of these nodes
/// holds fewer, ring elsewhere. The hierarchical one is open (is_open) until `settled`. InputError when hierarchical is
/// asked for and nodes hold different numbers of ranks.
Algorithm choose_all_reduce(const Plan& plan, const Machine& machine, const Mesh& mesh, int axis);

/// What is open of a choice, for a sum of `whole` along that axis (usual_between_nodes).
Algorithm settled(Algorithm sums, const Machine& machine, const Mesh& mesh, int axis, Bytes whole);

/// How ranks along an axis scatter sums and gather pieces (ZeRO, sequence parallelism): as the plan's sums where these
/// are a ring, rings or a library's choice; by ring under MPI's libraries; else by rings where each group has nodes of
/// its own, as NCCL does, so that all network cards of a node carry their part, and by ring elsewhere.
Algorithm choose_halves(const std::optional<Algorithm>& sums, const Machine& machine, const Mesh& mesh, int axis);

/// How layers are summed along the tensor axis: what the plan says; else direct where switches sum, as gradients
/// by default where its groups lie on several nodes, ring elsewhere.
Algorithm choose_layer_sum(const Plan& plan, const Machine& machine, const Mesh& mesh);

}  // namespace rehearse::schedule
