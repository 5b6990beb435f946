// SPDX-License-Identifier: Apache-2.0
// A rank's steps made ready: kernels prepared, buffers found, nothing left to decide while the clock runs.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/schedule.hpp"
#include "kernels/choices.hpp"
#include "run/tensors.hpp"

namespace rehearse::run {

struct Hyperparameters {
    float learning_rate = 0, momentum = 0, weight_decay = 0;
    float second_factor = 0.999F;  // Adam's beta 2; its beta 1 is `momentum`
};

/// `sum += part`, where several layers read one output, or micro-batches give to one gradient.
struct Addition {
    std::span<float> sum;
    std::span<const float> part;
    bool first = false;  // `sum = part`
};

using kernels::Wish;

/// A step with all that it touches. A step of the compute stream has a kernel, or takes its piece of a tensor; the
/// others have `data`: what is sent, received or worked on together.
struct ReadyStep {
    const Step* step = nullptr;
    kernels::Kernel* kernel = nullptr;
    kernels::Buffers buffers;
    std::span<float> data;
    std::function<void()> before, after;  // before the data are sent, after they have come or been computed
    std::vector<Addition> additions;      // then
    bool is_loss = false;
};

class Program {
public:
    /// The steps of the rank's class, on its memory. `schedule` outlives the program.
    /// InputError: an operator or a kind of step that cannot be executed.
    Program(const Schedule& schedule, std::int64_t rank, const Wish& wish, std::uint64_t seed,
            const Hyperparameters& hyperparameters);

    std::span<ReadyStep> steps() { return steps_; }
    const Part& part() const { return rank_class_.part; }
    Tensors& tensors() { return *tensors_; }
    std::int64_t samples() const { return schedule_.batch_per_rank; }  // of a step
    /// Loss of each of this rank's samples, summed since begin_step; 0 on a rank that does not compute it.
    double loss() const { return loss_; }
    bool has_loss() const { return has_loss_; }
    void begin_step() { loss_ = 0; }

    /// A kernel of the compute stream. `seed` is one a training step, `first_sample` where this rank's samples lie in
    /// the global batch: a Dropout's mask does not depend on how many ranks share the batch.
    void compute(ReadyStep& ready, std::uint64_t seed, std::int64_t first_sample);
    /// All forward and backward steps, on this thread: the gradients of one shard without communication or update.
    void compute_gradients(std::uint64_t seed, std::int64_t first_sample);

    /// What a step does when its data are there: see ReadyStep.
    static void finish(const ReadyStep& ready);

private:
    void choose_backends(const Wish& wish);
    void find_sums_of_micro_batches();
    void let_go_of_gathered_weights();
    Range own_piece(int bucket) const;
    void check_inputs() const;
    void check_tie(std::size_t layer) const;
    kernels::Kernel& kernel_of(const Problem& problem, const kernels::Choice& choice, Bytes scratch_limit);
    void reserve_scratch();
    void prepare(ReadyStep& ready, const Compute& compute, Bytes scratch_limit);
    void prepare_take(ReadyStep& ready, const Compute& compute);
    void prepare(ReadyStep& ready, const Update& update, const Wish& wish);
    void prepare(ReadyStep& ready, const Communicate& communicate);
    void prepare_pieces(ReadyStep& ready, const Communicate& communicate);
    std::span<float> room_for_gradient(ReadyStep& ready, int layer, int micro_batch);
    void prepare_bucket(ReadyStep& ready, const Communicate& communicate);
    void prepare(ReadyStep& ready, const Send& send);
    void prepare(ReadyStep& ready, const Recv& recv);
    /// Gradients of the layer's inputs: where each goes, and what is added to what came before.
    std::span<float> give(ReadyStep& ready, int layer, int input, int micro_batch, std::int64_t& used);
    void pass_on(ReadyStep& ready, int layer, int micro_batch);
    void accumulate(ReadyStep& ready, const Compute& compute, std::int64_t& used);
    void add_gradients_of_ties(ReadyStep& ready, const Compute& compute);
    void place_dropout(kernels::Buffers& buffers, int layer, const Dropout& dropout) const;
    std::int64_t first_row(int layer) const;
    Movement movement(int layer) const;

    const Schedule& schedule_;
    const RankClass& rank_class_;
    std::vector<std::int64_t> coordinates_;
    Hyperparameters hyperparameters_;
    std::vector<kernels::PassChoices> choices_;  // of each layer
    std::vector<std::uint64_t> layer_keys_;
    std::map<std::string, std::unique_ptr<kernels::Kernel>> kernels_;
    std::unique_ptr<Tensors> tensors_;
    Arena scratch_;  // of one step
    Slice scratch_all_;
    std::vector<std::vector<float>> joints_;  // pieces that are gathered or scattered, of each layer that does
    std::vector<std::vector<float>> beside_;  // gradients that are added to others
    /// By bucket whose gradients the ranks sum after every micro-batch: this rank's piece of the sums so far.
    std::map<int, std::vector<float>> sums_;
    std::set<int> summed_each_time_;  // layers of those buckets
    std::vector<ReadyStep> steps_;
    std::set<std::pair<int, int>> has_gradient_;  // layers and micro-batches: some earlier step has written the diff
    std::set<int> has_weight_gradient_;           // layers: some earlier micro-batch has
    bool has_loss_ = false;
    double loss_ = 0;
};

}  // namespace rehearse::run
