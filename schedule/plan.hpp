// SPDX-License-Identifier: Apache-2.0
// A plan: how a training run is split. Read from one string,
// "data=64:allreduce=hierarchical(ring,halving):bucket=25MB" or "pipe=4:microbatches=16,data=8,tensor=6".
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/machine.hpp"
#include "core/schedule.hpp"
#include "schedule/steps.hpp"

namespace rehearse::schedule {

/// How the copies along data share the batch.
struct BatchShares {
    bool balanced = false;              // by the speed and memory of their devices
    std::vector<std::int64_t> parts{};  // or in these proportions, a number a copy; empty: alike
    bool operator==(const BatchShares&) const = default;
};

/// How ranks along the tensor axis share a layer: by turns columns (filters) and rows (channels), as Megatron-LM, so
/// that what lies in pieces is used in pieces; or each layer by its filters, or by its channels (Kahira et al. 2021).
enum class TensorSplit : std::uint8_t { turns, filters, channels };

/// Large: one member an option of plans.
struct Plan {
    std::string text{};                     // as written
    Mesh mesh{};                            // an axis without a size has size 0 until make_schedule infers it
    std::optional<Algorithm> all_reduce{};  // absent: choose_all_reduce
    Bytes bucket{25e6};                     // gradients are sent in buckets of at least this size (PyTorch DDP: 25 MB)
    Bytes first_bucket{1e6};                // the first bucket may be smaller, so that sending starts early (DDP: 1 MB)
    bool overlap = true;                    // all-reduce while the backward pass goes on
    int zero = 0;                           // ZeRO's stage
    MethodData methods{};                   // of methods of training: what each has read (core/methods)
    BatchShares shares{};
    bool share_dense = false;               // one weird trick: the data axis shares the dense layers at the end
    bool share_tables = false;              // the data axis shares tables of embeddings (DLRM)
    bool bottom_on_one = false;             // and one rank has the layers that read no table, for the samples of all
    std::optional<Algorithm> tensor_sum{};  // of the sums inside layers; absent: choose_layer_sum
    TensorSplit tensor_split = TensorSplit::turns;
    bool sequence = false;                  // sequence parallelism beside tensor parallelism
    bool async_sums = false;                // gradients of inputs are summed beside those of weights
    std::string_view pipeline = "1f1b";     // a name of pipeline_strategies()
    int micro_batches = 0;                  // 0: as many as stages; 1 without a pipeline
    int micro_batch = 0;                    // samples of each, instead of their number
    std::vector<int> stage_copies{};        // ranks along pipe that have each stage; empty: one each
    int chunks = 0;                         // of each stage; 0: 2 where interleaved, else 1
    Recompute recompute = Recompute::none;  // activations are computed again before each backward
    bool cut_by_blocks = false;             // stages of equally many blocks; else balanced by prices
    std::vector<std::string> cuts{};        // or behind these layers of the network, by number or name
    bool scatter = false;                   // tensor ranks hand on a piece each of what all of them have
    std::optional<bool> keep_attention{};   // attention's probabilities for backward; absent: as software does
};

/// The axes of the mesh that spatial=AxBxC makes, by dimension.
inline constexpr std::array<const char*, 3> spatial_axes{"spatial", "spatial2", "spatial3"};

/// InputError names the unknown axis or option, what would be right, and what the user may have meant.
Plan parse_plan(std::string_view text);

/// What --plan help prints: every axis and option, with a summary.
struct PlanWord {
    std::string_view name, values, summary;
    std::string_view axis;  // of an option: the axis that it follows; of an axis: empty
};
std::span<const PlanWord> plan_words();

struct Job {
    std::int64_t devices = 1;
    std::int64_t batch_per_device = 32;          // of one copy of the network: the ranks along tensor and pipe share it
    std::optional<std::int64_t> global_batch{};  // instead: must be divisible by the data axis
    Precision precision = Precision::fp32;
    Optimizer optimizer = Optimizer::sgd;
};

/// InputError with the reason when the plan cannot be: the mesh's product is not the devices, the machine has too few,
/// a batch that is not positive or not divisible. Does not check memory: see Schedule::memory_peak.
Schedule make_schedule(const Network& network, const Machine& machine, const Plan& plan, const Job& job);

}  // namespace rehearse::schedule
