// SPDX-License-Identifier: Apache-2.0
// Steps that compute a layer: which kernel, and what it reads and writes.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "run/rank_context.hpp"
#include "run/steps/gradient_sums.hpp"
#include "run/steps/ready_step.hpp"
#include "run/steps/weight_versions.hpp"

namespace rehearse::run {

class LayerSteps {
public:
    /// `loss_batch`: samples of which a loss is the mean. What it is given outlives it.
    LayerSteps(RankContext& rank, GradientSums& gradients, std::int64_t loss_batch);

    /// To be asked in the order of the steps.
    void prepare(ReadyStep& ready, const Compute& compute);
    /// Before the step runs. `seed` is one a training step, `first_sample` where this rank's samples lie in the global
    /// batch: a Dropout's mask does not depend on how many ranks share the batch.
    void begin(ReadyStep& ready, const Compute& compute, std::uint64_t seed, std::int64_t first_sample) const;

private:
    void prepare_kernel(ReadyStep& ready, const Compute& compute);
    void prepare_take(ReadyStep& ready, const Compute& compute);
    void refuse_labels_left_out(ReadyStep& ready, int layer) const;
    void compute_loss_in_f32(ReadyStep& ready) const;
    const Given* given_of(int layer) const;
    void place_dropout(kernels::Buffers& buffers, int layer, const Dropout& dropout);
    void place_turned_rows(kernels::Buffers& buffers, int layer);

    RankContext& rank_;
    GradientSums& gradients_;
    WeightVersions versions_;
    std::int64_t loss_batch_;
    std::vector<std::uint64_t> keys_;                  // of each layer, for its dropout
    std::map<int, std::vector<std::int64_t>> places_;  // of a dropout's elements, of turned rows, by layer
    Arena room_;
    std::span<float> logits_, logit_gradients_;  // of one micro-batch, where layers compute in 16 bits
};

}  // namespace rehearse::run
