// SPDX-License-Identifier: Apache-2.0
// A rank's program: the steps of its schedule made ready, and run one by one. What a method of training adds to it is
// in run/methods.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "run/losses.hpp"
#include "run/methods/method.hpp"
#include "run/rank_context.hpp"
#include "run/steps/gradient_sums.hpp"
#include "run/steps/layer_messages.hpp"
#include "run/steps/layer_steps.hpp"
#include "run/steps/places.hpp"
#include "run/steps/ready_step.hpp"
#include "run/steps/ring.hpp"
#include "run/steps/updates.hpp"

namespace rehearse::run {

class Program {
public:
    /// The steps of the rank's class, on its memory. `schedule` outlives the program.
    /// InputError: an operator or a kind of step that cannot be executed.
    Program(const Schedule& schedule, RankIndex rank, const KernelSelection& selection, std::uint64_t seed,
            const Hyperparameters& hyperparameters);

    std::span<ReadyStep> steps() { return steps_; }
    const Part& part() const { return rank_.part(); }
    Tensors& tensors() { return rank_.tensors; }
    /// Samples of a step.
    std::int64_t samples() const { return batch_of(rank_.schedule, rank_.rank_class); }
    Blocks blocks() const { return blocks_of(rank_); }
    /// Where its kernels run, or null.
    kernels::Device* device() const { return rank_.device; }
    PlacedLayers placed() const { return rank_.kernels.placed(part().network); }
    const Losses& losses() const { return losses_; }
    LossScale& scale() { return rank_.scale; }

    void begin_step();
    /// A step of the compute stream. `seed` is one a training step, `first_sample` where this rank's samples lie in the
    /// global batch.
    /// `given`: the device has its kernels already, only what the host counts is left.
    void compute(ReadyStep& ready, std::uint64_t seed, std::int64_t first_sample, bool given = false);
    /// Behind the last step: on a device, waits until all is computed. What is read of a program, is read after this.
    void end_step();
    /// Behind end_step, where all that other ranks send in a step has come: what the methods make of it.
    void take_messages();
    /// On a device: whether the loss is looked at behind the last step, not behind its own.
    bool counts_loss_at_end() const;
    /// All forward and backward steps, on this thread: the gradients of one shard without communication or update.
    void compute_gradients(std::uint64_t seed, std::int64_t first_sample);

    /// Whether this step has gradients to update by.
    bool updates() const;
    /// Whether any gradient that it would update by is not finite.
    bool has_overflowed() const;
    /// Whether ranks may differ in that.
    bool overflows_apart() const { return run::overflows_apart(rank_.schedule, rank_.rank_class); }

    /// Between two steps: what is not in a tensor.
    ProgramState state() const;
    void set_state(const ProgramState& state);
    /// Likewise, of a rank that has a state of its own: all that the next step reads.
    void visit_own_state(const UseNumbers& use);
    /// Writes down in `sent`, which outlives the program, what methods by bits send from now on.
    void write_down(SentWords& sent);

private:
    void prepare(ReadyStep& ready);
    std::int64_t loss_batch() const;

    RankContext rank_;
    Losses losses_;
    std::vector<std::unique_ptr<Method>> methods_;
    GradientSums gradients_;
    LayerSteps layers_;
    LayerMessages messages_;
    Ring ring_;
    Updates updates_;
    std::vector<ReadyStep> steps_;
};

}  // namespace rehearse::run
