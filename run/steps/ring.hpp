// SPDX-License-Identifier: Apache-2.0
// Attention whose keys and values travel around a ring of ranks (core/ring_attention.hpp).
#pragma once

#include <cstdint>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include "core/ring_attention.hpp"
#include "kernels/attention_blocks.hpp"
#include "run/rank_context.hpp"
#include "run/steps/gradient_sums.hpp"
#include "run/steps/ready_step.hpp"

namespace rehearse::run {

/// All such layers of a rank share the memory of what travels: one of them is under way at a time.
class Ring {
public:
    /// What it is given outlives it.
    Ring(RankContext& rank, GradientSums& gradients);

    /// Whether the keys of this layer travel.
    bool has(int layer) const;
    /// To be asked in the order of the steps.
    void prepare(ReadyStep& ready, const Compute& compute);
    void prepare(ReadyStep& ready, const Communicate& communicate);

private:
    /// One layer, one micro-batch of it.
    struct Of {
        Attention op;
        int layer = 0, micro_batch = 0;
        std::int64_t ranks = 1;
    };
    Of of(int layer, int micro_batch) const;
    RingTurn next(const Of& of, Pass pass);
    kernels::AttentionBlock block(const Of& of, int turn) const;
    void hand_keys_on(ReadyStep& ready, const Of& of, int turn);
    void hand_gradients_on(ReadyStep& ready, const Of& of, int turn);
    void give_gradients(ReadyStep& ready, const Of& of);
    float* log_sums(const Of& of);

    RankContext& rank_;
    GradientSums& gradients_;
    std::int64_t own_ = 0;  // this rank's place in the ring
    std::map<std::tuple<int, int, Pass>, std::size_t> next_;
    std::map<std::pair<int, int>, std::vector<float>> log_sums_;  // by layer and slot
    // Each of two blocks, of the largest layer: keys and values; the sum of their gradients; what this rank has made
    // for it. Then of its queries, until all is there.
    std::vector<float> keys_, sums_, made_, diff_queries_;
};

}  // namespace rehearse::run
