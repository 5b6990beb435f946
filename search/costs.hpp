// SPDX-License-Identifier: Apache-2.0
// What layers cost on one rank of a tensor group, for any number of samples.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "core/machine.hpp"
#include "core/network.hpp"
#include "core/schedule.hpp"
#include "predict/framework.hpp"
#include "schedule/activations.hpp"
#include "schedule/plan.hpp"
#include "sim/collective/price.hpp"

namespace rehearse::search {

inline constexpr double bucket_bytes = 25e6;  // of gradients: the plan language's default

/// Of one micro-batch on one rank, layers before i: element i of each list; as many as layers + 1.
struct LayerCosts {
    std::vector<double> forward_s, backward_s;  // backward with what it computes again; both with sums inside layers
    std::vector<double> balanced_s;             // by which stages are cut: each layer's passes once, nothing sent
    std::vector<double> weights;                // elements; of which those of experts, which fewer ranks share:
    std::vector<double> expert_weights;
    std::vector<double> operand_bytes;  // of weights as they are multiplied in 8 bits
    std::vector<double> held_bytes;     // activations until they go backward
    std::vector<double> output_bytes;   // all outputs
    schedule::LayerMemory memory;       // by layer, but what is held
    double fullest_bytes = 0;           // of all of them, while they go backward; of whole stages gradients alone
    double update_s = 0;                // of one weight
    double bucket_weights = 0;          // elements that fill a bucket of gradients
    double computed_s = 0;              // of all forward and backward, without what is sent inside layers
    bool whole_stage = false;           // a stage's outputs, held_bytes, are all computed again at once
};

/// Ranks that share layers, and how.
struct Sharing {
    std::int64_t tensor = 1, expert = 1, context = 1;  // but one of them are 1
    bool ring = false;
    bool sequence = false;
    schedule::Recompute recompute = schedule::Recompute::none;
    auto operator<=>(const Sharing&) const = default;
};

/// What one rank of a tensor, expert or context group does with one sample (with as many as are routed to experts
/// together), in steps; priced for any number of samples. Large: lists of the same layers beside each other, so that
/// one more size is priced in a few additions.
class Group {
public:
    /// InputError when the group cannot be, in a plan's own words. `machine` and `framework` outlive this.
    Group(const Network& network, const Machine& machine, const predict::Framework& framework, schedule::Job job,
          const Sharing& sharing);

    /// Prices are those of the machine's first device under the framework. Nothing where so many samples cannot be
    /// routed.
    std::optional<LayerCosts> costs(std::int64_t micro_batch);

private:
    struct Doing {  // a step of a layer, or the sum inside it
        std::size_t layer = 0, what = 0;
        bool forward = true;  // false: backward, or forward again
    };
    struct Known {
        std::vector<bool> forward;  // layers whose forward pass has been
        std::map<std::tuple<CollectiveKind, std::int64_t, DataType>, std::size_t> sums;
    };
    void add(const Step& step, Known& known);
    /// Its place in `problems_`.
    std::size_t known_as(const Problem& problem);
    /// Of few equal blocks, what grows with each of them being known from even fewer.
    bool make_of_few(const Network& network, const schedule::Job& job, const Sharing& sharing);
    void measure(const Network& network, const schedule::Job& job, const Sharing& sharing);
    void find_sizes();
    /// Of all layers, from those of schedule_.
    std::vector<double> of_all(const std::vector<double>& values) const;
    /// [0, v0, v0 + v1, ...] of all layers.
    std::vector<double> running(const std::vector<double>& values) const;

    Seconds price_of(const Problem& problem) const;

    const Machine& machine_;
    const predict::Framework& framework_;
    schedule::Recompute recompute_;
    std::int64_t unit_;  // samples of the schedule
    Schedule schedule_;  // of all blocks, or of few
    /// Layers of its part that stand for as many more times.
    std::size_t block_begin_ = 0, block_end_ = 0, more_blocks_ = 0;
    double activations_ = 0, activation_gradients_ = 0;  // bytes of a unit, of all blocks
    /// Of layers before i, like LayerCosts; of a unit.
    std::vector<double> outputs_, held_, weights_, expert_weights_, operands_;
    schedule::LayerMemory memory_;   // by layer; of a unit
    std::vector<Problem> problems_;  // each once
    std::vector<Communicate> sums_;
    std::vector<Doing> computes_, communications_;
    std::vector<Doing> balanced_;  // passes as schedule::layer_costs counts them
    double update_s_ = 0;
    std::optional<Machine> part_;  // the nodes that the group lies on, and what its collectives take there
    std::optional<sim::CollectiveTimes> times_;
};

}  // namespace rehearse::search
