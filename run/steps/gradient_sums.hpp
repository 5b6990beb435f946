// SPDX-License-Identifier: Apache-2.0
// Gradients with several parts: of micro-batches, of several readers of one output, of shared weights.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "run/rank_context.hpp"
#include "run/steps/ready_step.hpp"

namespace rehearse::run {

/// Buckets whose gradients the ranks reduce-scatter after every micro-batch (ZeRO 2 and 3).
std::set<int> buckets_summed_each_time(const Schedule& schedule, const RankClass& rank_class);

/// To be asked in the order of the steps: who gives to a gradient first writes it, each later one's part is added.
class GradientSums {
public:
    explicit GradientSums(RankContext& rank);

    /// Begins a step of the compute stream: what its kernels write beside gradients lies in memory that all steps
    /// share.
    void begin_step() { used_ = 0; }
    /// Decides where a layer's kernel writes the gradient of its weights, and what is added then.
    void add_weights(ReadyStep& ready, const Compute& compute);
    /// Returns where `layer` writes the gradient of its input `input`, to be added where another one has given before;
    /// empty where nobody needs it.
    kernels::View give(ReadyStep& ready, int layer, int input, int micro_batch);
    /// The same for the input at `position` where it comes on another stream: in memory of the layer's own.
    kernels::View give_received(ReadyStep& ready, int layer, int position, int micro_batch);
    /// Passes on the gradient that a `copy` or `send` has got: its input's is the same memory, or gets it added.
    void pass_on(ReadyStep& ready, int layer, int micro_batch);

private:
    int axis_of(int layer) const;
    kernels::View part_of_scratch(std::size_t size, DataType type);
    /// Whether each micro-batch writes the gradient of this layer's weights anew.
    bool is_written_each_time(int layer) const;
    void add_ties(ReadyStep& ready, const Compute& compute) const;

    RankContext& rank_;
    std::set<int> written_each_time_;  // layers whose gradients do not outlast a micro-batch
    Arena scratch_;                    // of one step
    Slice all_;
    std::int64_t used_ = 0;  // of it, in elements
    std::map<std::pair<int, int>, std::vector<std::byte>>
        beside_;                                  // by layer and position: what comes on another stream
    std::set<std::pair<int, int>> has_gradient_;  // layers and micro-batches: some earlier step has written the diff
    std::set<int> has_weight_gradient_;           // layers: some earlier micro-batch has
};

}  // namespace rehearse::run
