// SPDX-License-Identifier: Apache-2.0
// A rank's steps made ready: kernels prepared, buffers found, nothing left to decide while the clock runs.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/schedule.hpp"
#include "kernels/choices.hpp"
#include "run/tensors.hpp"

namespace rehearse::run {

struct Hyperparameters {
    float learning_rate = 0, momentum = 0, weight_decay = 0;
};

/// `sum += part`, where several layers read one output.
struct Addition {
    std::span<float> sum;
    std::span<const float> part;
};

using kernels::Wish;

/// A step with its kernel. Of a step of the communication stream only `step`.
struct ReadyStep {
    const Step* step = nullptr;
    kernels::Kernel* kernel = nullptr;
    kernels::Buffers buffers;
    std::vector<Addition> additions;
};

class Program {
public:
    /// The steps of `rank_class`, on the memory of this rank. `schedule` outlives the program.
    /// InputError: an operator or a kind of step that cannot be executed.
    Program(const Schedule& schedule, const RankClass& rank_class, const Wish& wish, std::uint64_t seed,
            const Hyperparameters& hyperparameters);

    std::span<ReadyStep> steps() { return steps_; }
    Tensors& tensors() { return *tensors_; }
    std::span<float> input();
    /// Loss of each of this rank's samples, summed.
    double loss() const;

    /// A kernel of the compute stream. `seed` is one a training step, `first_sample` where this rank's samples lie in
    /// the global batch: a Dropout's mask does not depend on how many ranks share the batch.
    void compute(ReadyStep& ready, std::uint64_t seed, std::int64_t first_sample);
    /// All forward and backward steps, on this thread: the gradients of one shard without communication or update.
    void compute_gradients(std::uint64_t seed, std::int64_t first_sample);

private:
    void choose_backends(const Wish& wish);
    kernels::Kernel& kernel_of(const Problem& problem, const kernels::Choice& choice, Bytes scratch_limit);
    void prepare(ReadyStep& ready, const Compute& compute, Bytes scratch_limit);
    void add_gradients_of_inputs(ReadyStep& ready, const Compute& compute);
    void prepare(ReadyStep& ready, const Update& update, const Wish& wish);

    const Schedule& schedule_;
    Hyperparameters hyperparameters_;
    std::vector<kernels::PassChoices> choices_;  // of each layer
    std::map<std::string, std::unique_ptr<kernels::Kernel>> kernels_;
    std::unique_ptr<Tensors> tensors_;
    Arena scratch_;
    std::vector<ReadyStep> steps_;
    std::vector<bool> has_gradient_;  // of each layer: some earlier step has written its diff
    std::vector<int> losses_;
};

}  // namespace rehearse::run
