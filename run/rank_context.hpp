// SPDX-License-Identifier: Apache-2.0
// What all steps of a rank are made from: its program, place on the mesh, kernels and memory.
#pragma once

#include <cstdint>
#include <vector>

#include "core/index.hpp"
#include "core/schedule.hpp"
#include "run/loss_scale.hpp"
#include "run/steps/kernel_set.hpp"
#include "run/tensors.hpp"

namespace rehearse::run {

struct Hyperparameters {
    float learning_rate = 0, momentum = 0, weight_decay = 0;
    float second_factor = 0.999F;  // Adam's beta 2; its beta 1 is `momentum`
    float epsilon = 0;             // 0: default_epsilon
    float loss_scale = 65536;      // of f16, at the start
    int growth_interval = 2000;    // good steps after which it is doubled
};

struct RankContext {
    /// `schedule` outlives it. InputError: an operator that nobody runs.
    RankContext(const Schedule& of, RankIndex number, const KernelSelection& selection, std::uint64_t seed,
                const Hyperparameters& with);
    RankContext(const RankContext&) = delete;
    RankContext& operator=(const RankContext&) = delete;
    ~RankContext() = default;

    const Part& part() const { return rank_class.part; }
    /// Samples of a micro-batch of this rank.
    std::int64_t micro_batch() const { return micro_batch_size(schedule, rank_class); }
    /// This rank's share of a bucket, in elements, where the ranks along the bucket's axis share it.
    Range own_piece(int bucket) const;

    const Schedule& schedule;
    const RankClass& rank_class;
    RankIndex rank;
    std::vector<std::int64_t> coordinates;  // along all axes of the mesh, then along joined ones
    kernels::Device* device;                // where the kernels run; null: the host
    Hyperparameters hyperparameters;
    KernelSet kernels;
    Tensors tensors;
    LossScale scale;
};

}  // namespace rehearse::run
