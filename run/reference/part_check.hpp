// SPDX-License-Identifier: Apache-2.0
// The same training once more on a single rank, for plans that cut the network.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "core/schedule.hpp"
#include "run/checkpoint/checkpoint.hpp"
#include "run/methods/server_shard.hpp"
#include "run/program.hpp"
#include "run/reference/followed.hpp"
#include "run/reference/gradient_check.hpp"

namespace rehearse::run {

/// Whether each rank has and computes the whole network, so that the gradients of a shard are equal bits on every rank.
bool is_whole(const Schedule& schedule);

constexpr int perturbations = 3;
constexpr double allowance = 8;  // of their largest

/// Whether ranks round otherwise than one does: some have other layers than the network, so that sums are added in
/// another order, or gradients are multiplied with inverses.
bool rounds_apart(const Schedule& schedule);

struct ReferenceOptions {
    KernelSelection selection;
    std::uint64_t weights_seed = 0;
    Hyperparameters hyperparameters;
    int steps = 1;
    std::shared_ptr<const Checkpoint> begun{};  // that the training went on from; null: it began with its first step
    std::vector<bool> skipped{};                // steps whose updates were left out, for gradients that overflowed
    float scale = 1;                            // that the last step's gradients were multiplied by
    std::function<std::uint64_t(int step)> dropout_seed;
    /// Puts `count` samples from `first` of the global batch of a step into a program.
    std::function<void(int step, std::int64_t first, Program& program)> load;
    ServerLogs served{};  // with parameter servers
    AllSent sent{};       // with methods by bits, where all ranks train in step
    /// With learners: by shard, step and part of the shard's batch, who took it; empty: each as many, in their order.
    std::vector<std::vector<std::vector<int>>> taken{};

    int first_step() const { return begun == nullptr ? 0 : static_cast<int>(begun->steps); }
};

/// `own` has trained its part of `schedule` for some steps. The whole network trains as many steps on this rank alone,
/// micro-batch by micro-batch (an asynchronous pipeline's by weights as old as theirs), by `single`, a schedule of one
/// rank with one micro-batch's samples. Then the gradients of the last step and the weights after it are compared,
/// layer by layer.
///
/// error: |own - whole's| / |the whole layer's| in the Euclidean norm, of the layer where it is largest against its
/// tolerance.
/// tolerance: cut layers add up in another order, so that no bits can be compared. How far rounding can reach is
/// measured (Monte Carlo arithmetic, Parker 1997): the whole network trains three times more, with each weight changed
/// once by a random part of sqrt(k) 2^-24 of itself, k its layer's fan-in, which is what a sum of k rounded terms errs
/// by (Higham and Mary 2019); eight times the largest of the three changes is allowed, and 2^-18 at least.
/// K-FAC's factors, and what is multiplied with their inverses, are changed likewise.
/// With lag=1 each update is by the gradients of the step before it; the first step has none.
/// Methods that do more than sum gradients are held to what they mean, written out (single_rank.hpp); the order of the
/// servers' updates is as it was. Which gradients are sent in few bits depends on bits, so that training is not
/// changed, and has to be the same to 2^-18; where ranks round apart, a bit that rounding can turn is taken as the
/// ranks sent it (followed.hpp), and the rest is held to the three changes again. Where `schedule` computes in 16 bits,
/// `single` still computes in f32. A layer then rounds its weights, its input and its output, each by half a unit u
/// (2^-11 in f16, 2^-8 in bf16), and so do the gradients: each weight is changed by 3 u. Weights and moments that the
/// optimizer keeps in 16 bits are rounded to them after each update here, too: what vanishes there is no error.
GradientCheck check_part(const Schedule& schedule, RankIndex rank, Program& own, const Schedule& single,
                         const ReferenceOptions& options);

}  // namespace rehearse::run
