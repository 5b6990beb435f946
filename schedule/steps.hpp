// SPDX-License-Identifier: Apache-2.0
// From what a rank class computes, and in which order, to its steps.
#pragma once

#include <map>
#include <vector>

#include "core/schedule.hpp"
#include "schedule/axes/orders.hpp"
#include "schedule/axes/stages.hpp"

namespace rehearse::schedule {

/// How ranks with the same weights bring them together after each step.
struct GradientSum {
    std::map<int, Algorithm> algorithms{};  // of sums, by the axis of a bucket
    std::map<int, Algorithm> halves{};      // of reduce-scatters and all-gathers
    bool overlap = true;                    // while the backward pass goes on
    /// ZeRO (Rajbhandari et al. 2020): 0, every rank updates all weights; 1, each updates its piece, from all
    /// gradients; 2, each gets the sum of its piece's gradients only. Then the ranks gather the weights. 3, each gets
    /// the sum of its piece's gradients after every micro-batch, and keeps its piece of the weights (gathers.hpp).
    int zero = 0;
    DataType wire = DataType::f32;  // of the sums
    int lag = 0;                    // 1: of what the step before this one has left, from its beginning on
};

/// What is computed again in the backward pass: nothing; all that a stage holds, at once; block after block, so that
/// only one block's activations are held (Chen et al. 2016); attention alone (Korthikanti et al. 2022).
enum class Recompute { none, all, blocks, attention };

struct StepOptions {
    GradientSum sum;
    Algorithm tensor{};         // of the sums of layers
    Algorithm tensor_halves{};  // of their reduce-scatters and all-gathers
    Recompute recompute = Recompute::none;
    bool async_sums = false;    // of tensor ranks: the gradient of the input first, its sum beside that of the weights
    StageIndex stage{0};        // of the pipeline
    bool asynchronous = false;  // weights are updated after each micro-batch (PipeDream, local SGD)
};
struct Plan;

/// Fills `rank_class.steps` and `slots` from its part. Needs network, precision, mesh, batch_per_rank and
/// micro_batches of `schedule`. Steps of one stream wait for each other by their order alone; `after` is for what
/// another stream must have ended.
///
///   compute        forward 0..n | backward n ............. 0 | update 0, update 1
///   communication                     [bucket 0]   [bucket 1]^
///   ... overlap=off                                           [bucket 0] [bucket 1]
///   ... lag=1       [bucket 0] [bucket 1] of the step before
///   ... elastic     [bucket 0] [bucket 1] differences of the models as they are at the beginning
///   ... local       after the last of the step's updates: [bucket 0] [bucket 1], the models
///
/// With servers a bucket is traded as soon as its gradients are there, on a stream of its own, and nothing is updated;
/// the first of a group then hands the weights on. With elastic, too, ranks update their own models, and trade these at
/// the end of the step for how far they give way to the average that the servers keep.
///
/// What a chunk receives may come in while the item before the one that needs it is computed, not earlier: memory for
/// one micro-batch in advance.
void make_steps(const Schedule& schedule, const Plan& plan, const Order& order, const std::vector<Chunk>& chunks,
                const StepOptions& options, RankClass& rank_class);

}  // namespace rehearse::schedule
