// SPDX-License-Identifier: Apache-2.0
// A rank's steps made ready: kernels prepared, buffers found, nothing left to decide while the clock runs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/index.hpp"
#include "core/precision.hpp"
#include "core/schedule.hpp"
#include "kernels/choices.hpp"
#include "run/tensors.hpp"

namespace rehearse::run {

struct Hyperparameters {
    float learning_rate = 0, momentum = 0, weight_decay = 0;
    float second_factor = 0.999F;  // Adam's beta 2; its beta 1 is `momentum`
    float loss_scale = 65536;      // of f16, at the start
    int growth_interval = 2000;    // good steps after which it is doubled
};

/// `sum += part`, where several layers read one output, or micro-batches give to one gradient.
struct Addition {
    kernels::View sum;
    kernels::ConstView part;
    bool first = false;    // `sum = part`
    kernels::View wide{};  // where `part` is of another type than `sum`: room for it in that type
};

using kernels::Wish;

/// A step with all that it touches. A step of the compute stream has a kernel, or takes its piece of a tensor; the
/// others have `data`: what is sent, received or worked on together.
struct ReadyStep {
    const Step* step = nullptr;
    kernels::Kernel* kernel = nullptr;
    kernels::Buffers buffers;
    kernels::View data;
    kernels::View on_device{};            // what of a device's memory is summed, where `data` is staged as it is
    std::span<std::byte> room{};          // of a collective's slots, where what comes in them is read afterwards
    std::function<void()> before, after;  // before the data are sent, after they have come or been computed
    bool host_works = true;               // in these two: a device is waited for first
    std::vector<Addition> additions;      // then
    bool is_loss = false;
    kernels::ConstView scaled{};  // gradients, of an update where the loss is scaled
};

/// What a program counts.
struct ProgramState {
    float loss_scale = 1;
    std::int64_t good_steps = 0, updates = 0;
    std::int64_t begun = 0;  // steps, with lag=1
    float made_scale = 1;    // of the gradients that these have left
};

/// Where the elements of a rank's block of a sample, of its labels and ids, lie in a whole one; empty: it has all of
/// it.
struct Blocks {
    std::vector<std::int64_t> input, labels, ids;
    std::int64_t whole_input = 0, whole_labels = 0, whole_ids = 0;  // elements
    /// Where ids are those of several samples, how far from its own each of these lies in the global batch.
    std::vector<std::int64_t> samples{};
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
    std::int64_t samples() const { return batch_of(schedule_, rank_class_); }  // of a step
    Blocks blocks() const;
    /// Loss of each of this rank's samples, summed since begin_step; 0 on a rank that does not compute it.
    double loss() const { return loss_; }
    bool has_loss() const { return has_loss_; }
    /// Classes of the network's loss where it has one label a pixel; else 0. Then how many pixels of each class (rows)
    /// this rank's scores took for which (columns), since begin_step.
    std::int64_t pixel_classes() const { return pixel_classes_; }
    std::span<const double> confusion() const { return confusion_; }
    void begin_step();
    /// After a step with servers: the weights that they gave in exchange, or less what a model gives up.
    void take_fresh_weights();

    /// A kernel of the compute stream. `seed` is one a training step, `first_sample` where this rank's samples lie in
    /// the global batch: a Dropout's mask does not depend on how many ranks share the batch.
    void compute(ReadyStep& ready, std::uint64_t seed, std::int64_t first_sample);
    /// Behind the last step: on a device, waits until all is computed. What is read of a program, is read after this.
    void end_step();
    /// Where its kernels run, or null.
    kernels::Device* device() const { return device_; }
    /// Layers of the part that compute, and how many of them on the host although there is a device.
    struct Placed {
        int layers = 0, on_host = 0;
        std::set<std::string_view> kinds{};  // of those
    };
    Placed placed() const;
    /// Loss scaling (Micikevicius et al. 2018): the loss's gradient is multiplied by loss_scale(), the weights' divided
    /// before their update; a step in which any of them is not finite updates nothing.
    bool scales() const { return scales_loss(schedule_.precision); }
    float loss_scale() const { return scale_; }
    /// Of the gradients that this step updates by.
    float applied_scale() const { return schedule_.lag > 0 ? kept_scale_ : scale_; }
    /// The first step of lag=1 has no gradients to update by.
    bool applies() const { return schedule_.lag == 0 || begun_ > 1; }
    /// Between two steps: what is not in a tensor.
    ProgramState state() const;
    /// Likewise, of a rank that goes its own way: all that the next step reads, one span after the other.
    void visit_own_state(const std::function<void(std::span<float>)>& use);
    float made_scale() const { return made_scale_; }
    void set_state(const ProgramState& state);
    bool has_overflowed() const;  // any gradient of this rank
    /// Whether ranks may differ in that.
    bool may_differ() const;
    void skip_updates(bool skip) { skips_ = skip; }
    bool skips() const { return skips_; }
    /// Halves the scale after a skipped step; doubles it after `growth_interval` good ones.
    void adapt_scale();
    /// All forward and backward steps, on this thread: the gradients of one shard without communication or update.
    void compute_gradients(std::uint64_t seed, std::int64_t first_sample);

    /// What a step does when its data are there: see ReadyStep.
    static void finish(const ReadyStep& ready);

private:
    void choose_backends(const Wish& wish);
    void find_sums_of_micro_batches();
    void make_weight_versions();
    kernels::View version_of(kernels::View weights, int micro_batch);
    void keep_version(ReadyStep& ready, int micro_batch);
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
    kernels::View room_for_gradient(ReadyStep& ready, int layer, int micro_batch);
    void prepare_bucket(ReadyStep& ready, const Communicate& communicate);
    void prepare_tie(ReadyStep& ready, const Communicate& communicate);
    void prepare_halo(ReadyStep& ready, const Communicate& communicate);
    void prepare_exchange(ReadyStep& ready, const Communicate& communicate);
    void find_shared_tables(Blocks& blocks, int bag) const;
    void prepare(ReadyStep& ready, const Precondition& step, const Wish& wish);
    void prepare_factor(ReadyStep& ready, const Precondition& step, const Wish& wish);
    kernels::Kernel& product(const Problem& problem, const Wish& wish);
    std::span<float> factor(int bucket, Precondition::Side side);
    kernels::ConstView rows_of(ReadyStep& ready, const Precondition& step);
    std::vector<float>& inverse(int bucket, Precondition::Side side);
    std::function<void()> inversion(int bucket, Precondition::Side side);
    std::function<void()> direction(int bucket, Precondition::Side side, const Wish& wish);
    void prepare_own_way(ReadyStep& ready, const Communicate& communicate);
    void prepare_differences(ReadyStep& ready, int bucket);
    void pull_together(int bucket);
    void prepare_compressed(ReadyStep& ready, const Communicate& communicate);
    void prepare(ReadyStep& ready, const Trade& trade);
    void prepare_vectors(ReadyStep& ready, const Trade& trade);
    kernels::View fresh(int bucket);
    std::vector<std::int64_t> places_in_sample(int layer) const;
    std::vector<std::int64_t> places_in_samples_of_all(const Dropout& dropout) const;
    std::int64_t loss_batch(int layer) const;
    std::int64_t traders() const;
    void prepare(ReadyStep& ready, const Send& send);
    void prepare(ReadyStep& ready, const Recv& recv);
    /// Gradients of the layer's inputs: where each goes, and what is added to what came before.
    kernels::View give(ReadyStep& ready, int layer, int input, int micro_batch, std::int64_t& used);
    kernels::View part_of_scratch(std::size_t size, DataType type, std::int64_t& used) const;
    void count_pixels(const ReadyStep& ready);
    void compute_loss_in_f32(ReadyStep& ready);
    void send_as(ReadyStep& ready, DataType type);
    void stage(ReadyStep& ready);
    void unscale(ReadyStep& ready);
    void pass_on(ReadyStep& ready, int layer, int micro_batch);
    void accumulate(ReadyStep& ready, const Compute& compute, std::int64_t& used);
    void add_gradients_of_ties(ReadyStep& ready, const Compute& compute);
    void place_dropout(kernels::Buffers& buffers, int layer, const Dropout& dropout);
    std::int64_t first_row(int layer) const;
    Movement movement(int layer) const;

    void wait_for_device() const;
    void add_up(const ReadyStep& ready);
    bool counts_loss_at_end() const;
    void count_loss(const ReadyStep& ready);

    const Schedule& schedule_;
    const RankClass& rank_class_;
    kernels::Device* device_;
    std::vector<std::int64_t> coordinates_;
    Hyperparameters hyperparameters_;
    std::vector<kernels::PassChoices> choices_;  // of each layer
    std::vector<std::uint64_t> layer_keys_;
    std::map<std::string, std::unique_ptr<kernels::Kernel>> kernels_;
    std::unique_ptr<Tensors> tensors_;
    Arena scratch_;  // of one step
    Slice scratch_all_;
    /// Pieces that are gathered or scattered, of each layer that does, and gradients that are added to others.
    std::vector<std::vector<std::byte>> joints_, beside_;
    std::map<int, std::vector<std::int64_t>> places_;    // of a dropout's elements, by layer
    std::span<float> logits_, logit_gradients_;          // of one micro-batch, where layers compute in 16 bits
    std::vector<std::vector<std::byte>> sent_;           // gradients in the type that they are sent in
    std::vector<kernels::Device::Memory> staging_;       // where the host sends a device's gradients from
    std::span<float> unscaled_;                          // gradients of one bucket
    float scale_ = 1, made_scale_ = 1, kept_scale_ = 1;  // made_: of the gradients that this step makes
    std::int64_t begun_ = 0;
    int good_steps_ = 0;
    bool skips_ = false;
    /// By bucket whose gradients the ranks sum after every micro-batch: this rank's piece of the sums so far.
    std::map<int, std::vector<std::byte>> sums_;
    std::set<int> summed_each_time_;  // layers of those buckets, or of all where each micro-batch updates them
    bool asynchronous_ = false;       // each micro-batch updates the weights
    std::vector<std::vector<float>> versions_;  // of all weights, by slot; none where the latest are always right
    std::set<int> begun_micro_batches_;
    std::map<int, std::int64_t> updates_;  // by bucket, so far
    /// Of a bucket: the average model, as it was a step ago, how far this rank's model is from it, the sum of that.
    struct Average {
        std::vector<float> average, last, own, sum;
    };
    std::map<int, Average> averages_;                      // by bucket, like these:
    std::map<int, std::vector<float>> left_out_, words_;   // of compressed gradients: what waits, what is sent
    std::map<int, std::vector<float>> fresh_;              // weights that servers have given
    std::map<int, std::vector<float>> factors_, between_;  // of K-FAC: both, packed; half of what the inverses make
    std::map<std::pair<int, Precondition::Side>, std::vector<float>> sums_of_products_, inverses_;
    std::map<std::pair<int, Precondition::Side>, std::vector<float>> rows_;  // of convolutions: what products are of
    std::map<int, std::vector<float>> matrices_;  // their gradients, as those of dense layers
    std::vector<ReadyStep> steps_;
    std::set<std::pair<int, int>> has_gradient_;  // layers and micro-batches: some earlier step has written the diff
    std::set<int> has_weight_gradient_;           // layers: some earlier micro-batch has
    bool has_loss_ = false;
    double loss_ = 0;
    std::int64_t pixel_classes_ = 0;
    std::vector<double> confusion_;
};

/// Whether a server makes a dense layer's gradient itself, from its inputs and errors.
inline bool sends_vectors(const Trade& trade) { return trade.sent != trade.received; }

/// Intersection over union of each class that occurs or is taken for one, their mean.
double mean_iou(std::span<const double> confusion, std::int64_t classes);

}  // namespace rehearse::run
